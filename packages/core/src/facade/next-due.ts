import type { Cadence } from '@carillon/cadence'

import { spreadOffsetMs } from '../policy/spread.ts'
import type { NextDue } from '../store/schedule-writes.ts'

/** The first slot after an instant, and when it is due: what a schedule waits for after a change, never what is past. */
export function nextDueAfter(cadence: Cadence, after: number, scheduleId: string, spreadSeconds: number): NextDue {
  return dueOf(cadence.next(after), scheduleId, spreadSeconds)
}

export function dueOf(slot: number | null, scheduleId: string, spreadSeconds: number): NextDue {
  return { nextSlotAt: slot, dueAt: slot === null ? null : slot + spreadOffsetMs(scheduleId, spreadSeconds) }
}
