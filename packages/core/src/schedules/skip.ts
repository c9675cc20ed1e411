import { DAY_MS, expectedText, SKIPPED_SLOTS_MAX } from '@carillon/api'

import { readCadence, searchSlots } from '../cadences/cadence-cache.ts'
import { CarillonError, invalidInput } from '../kernel/errors.ts'
import type { Caller } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import { changeSchedule } from './change.ts'
import type { SchedulerContext } from './context.ts'
import { get } from './reads.ts'
import { setExcludedSlots } from './store/schedule-writes.ts'

export async function skip(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  scheduledFor: number,
): Promise<Schedule> {
  await changeSchedule(context, caller, id, {}, async (tx, schedule, now) => {
    const isAhead = scheduledFor + spreadOffsetMs(id, schedule.policy.spreadSeconds) > now
    if (!isAhead || !isSlot(schedule, scheduledFor)) {
      throw slotNotFound('a slot of the schedule that is still ahead', scheduledFor)
    }
    const slots = new Set([...schedule.excludedSlots.filter((slot) => slot > now - DAY_MS), scheduledFor])
    if (slots.size > SKIPPED_SLOTS_MAX) {
      throw invalidInput([
        {
          path: 'scheduledFor',
          message: `expected at most ${SKIPPED_SLOTS_MAX} skipped slots, got ${slots.size}: pause the schedule instead`,
        },
      ])
    }
    await setExcludedSlots(tx, { id, slots: [...slots].toSorted((a, b) => a - b) })
    return { change: 'slot_skipped', reason: new Date(scheduledFor).toISOString() }
  })
  return get(context, caller, id)
}

export async function restore(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  scheduledFor: number,
): Promise<Schedule> {
  await changeSchedule(context, caller, id, {}, async (tx, schedule) => {
    if (!schedule.excludedSlots.includes(scheduledFor)) {
      throw slotNotFound('a slot that a caller skipped', scheduledFor)
    }
    await setExcludedSlots(tx, { id, slots: schedule.excludedSlots.filter((slot) => slot !== scheduledFor) })
    return { change: 'slot_restored', reason: new Date(scheduledFor).toISOString() }
  })
  return get(context, caller, id)
}

/** Uses `toJSON`, which returns null for a number that is no instant: `toISOString` would throw. */
function slotNotFound(expected: string, scheduledFor: number): CarillonError {
  const found = new Date(scheduledFor).toJSON()
  const message = `${expectedText(expected, found)}: look at the slots of the schedule`
  return new CarillonError('slot_not_found', message, { problems: [{ path: 'scheduledFor', message }] })
}

function isSlot(schedule: Schedule, instant: number): boolean {
  const cadence = readCadence(schedule.cadence)
  return searchSlots('scheduledFor', () => cadence.next(instant - 1)) === instant
}
