import { stableFraction } from './stable-fraction.ts'

/**
 * By how much a schedule is due after its nominal slot: always the same for one schedule, in [0, spreadSeconds). So a
 * herd of `0 9 * * *` does not arrive at once, and no schedule's slots come closer to each other than its cadence says.
 */
export function spreadOffsetMs(scheduleId: string, spreadSeconds: number): number {
  return Math.floor(stableFraction(scheduleId) * spreadSeconds * 1000)
}
