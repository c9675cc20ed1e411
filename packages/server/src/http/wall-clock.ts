import type { Clock } from '@carillon/core'

import { systemWallClock } from '../clock.ts'

/** What to write where somebody reads the time, in epoch milliseconds. Nothing is decided by it (I10). */
export function wallNow(clock: Clock): number {
  return clock.databaseNow()?.getTime() ?? systemWallClock.now()
}
