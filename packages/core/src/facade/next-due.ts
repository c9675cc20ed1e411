import type { Cadence } from '@carillon/cadence'

import { spreadOffsetMs } from '../policy/spread.ts'
import type { NextDue } from '../store/schedule-writes.ts'
import { findingSlots } from './schedule-cadence.ts'

/**
 * The first slot after an instant, and when it is due: what a schedule waits for after a change, never what is past.
 * @throws CarillonError if the cadence is too sparse for it to be found
 */
export function nextDueAfter(cadence: Cadence, after: number, scheduleId: string, spreadSeconds: number): NextDue {
  return dueOf(slotAfter(cadence, after), scheduleId, spreadSeconds)
}

/**
 * The last question to a cadence and its answer. Between the two there is no other slot, so it is the answer for every instant
 * between them as well: who imports a thousand schedules of one cadence asks once.
 */
const answers = new WeakMap<Cadence, { readonly after: number; readonly slot: number | null }>()

function slotAfter(cadence: Cadence, after: number): number | null {
  const known = answers.get(cadence)
  if (known !== undefined && known.after <= after && (known.slot === null || after < known.slot)) return known.slot
  const slot = findingSlots('cadence', () => cadence.next(after))
  answers.set(cadence, { after, slot })
  return slot
}

export function dueOf(slot: number | null, scheduleId: string, spreadSeconds: number): NextDue {
  return { nextSlotAt: slot, dueAt: slot === null ? null : slot + spreadOffsetMs(scheduleId, spreadSeconds) }
}
