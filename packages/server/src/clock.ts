import type { Clock } from '@carillon/core'

/** This machine's time of day, for sessions and tokens. Postgres' clock decides what is due, never this one (I10). */
export interface WallClock {
  /** Epoch milliseconds. */
  now(): number
}

export const systemWallClock: WallClock = { now: () => Date.now() }

/** The current time for what people see, in epoch milliseconds. No decision depends on it (I10). */
export function wallNow(clock: Clock): number {
  return clock.databaseNow()?.getTime() ?? systemWallClock.now()
}
