import { systemClock, type Clock } from '@carillon/core'

/** A clock whose time for statements stands still. Its timers run. */
export function clockAt(instant: string): Clock {
  return { ...systemClock, databaseNow: () => new Date(instant) }
}
