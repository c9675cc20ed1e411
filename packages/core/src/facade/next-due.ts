import type { Cadence } from '@carillon/cadence'

import { spreadOffsetMs } from '../policy/spread.ts'
import type { NextDue } from '../store/schedule-writes.ts'
import { findingSlots } from './schedule-cadence.ts'

/**
 * The first slot after an instant, and when it is due: what a schedule waits for after a change, never what is past.
 * @throws CarillonError if the cadence is too sparse for it to be found
 */
export function nextDueAfter(cadence: Cadence, after: number, scheduleId: string, spreadSeconds: number): NextDue {
  const slot = findingSlots('cadence', () => cadence.next(after))
  return dueOf(slot, scheduleId, spreadSeconds)
}

export function dueOf(slot: number | null, scheduleId: string, spreadSeconds: number): NextDue {
  return { nextSlotAt: slot, dueAt: slot === null ? null : slot + spreadOffsetMs(scheduleId, spreadSeconds) }
}
