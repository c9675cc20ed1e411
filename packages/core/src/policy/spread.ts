import { stableFraction } from './stable-fraction.ts'

/**
 * How long after its nominal slot a schedule is due: always the same for one schedule, in [0, spreadSeconds). So a herd of
 * `0 9 * * *` does not arrive at once, and the distance between two slots of a schedule stays that of its cadence.
 */
export function spreadOffsetMs(scheduleId: string, spreadSeconds: number): number {
  return Math.floor(stableFraction(scheduleId) * spreadSeconds * 1000)
}
