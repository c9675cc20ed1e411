import type { Clock } from '@carillon/core'

/** The time of day, for sessions and tokens. Never for due-ness, which Postgres decides (I10). */
export interface WallClock {
  /** Epoch milliseconds. */
  now(): number
}

export const systemWallClock: WallClock = { now: () => Date.now() }

/** The time to show to people, in epoch milliseconds. No decision depends on it (I10). */
export function wallNow(clock: Clock): number {
  return clock.databaseNow()?.getTime() ?? systemWallClock.now()
}
