import { systemClock, type Clock } from '@carillon/core'

/** What statements take for now stands still; timers run. */
export function clockAt(instant: string): Clock {
  return { ...systemClock, databaseNow: () => new Date(instant) }
}
