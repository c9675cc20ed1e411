import { expectedText, isStorable, PAUSE_REASON_MAX_LENGTH, type ScheduleState } from '@carillon/api'

import { nextDueAfter, NOT_DUE } from '../cadences/cadence-cache.ts'
import { CarillonError, invalidInput } from '../kernel/errors.ts'
import type { Caller } from '../kernel/scope.ts'
import { skipWaitingSlots } from '../ledger/open-runs.ts'
import type { Schedule } from '../ledger/records.ts'
import { isUsedUp } from '../policy/schedule-policy.ts'
import { changeSchedule, closeDueSlots, writeBacklogs } from './change.ts'
import { changeEvent, type SchedulerContext } from './context.ts'
import type { ChangeOptions } from './options.ts'
import { get } from './reads.ts'
import { pauseSchedule, resumeSchedule } from './store/schedule-writes.ts'

export async function pause(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  { reason, ...options }: ChangeOptions & { readonly reason: string },
): Promise<Schedule> {
  if (!isReason(reason)) {
    const expected = `a reason of 1 to ${PAUSE_REASON_MAX_LENGTH} characters that does not begin with auto:`
    throw invalidInput([{ path: 'reason', message: expectedText(expected, reason) }])
  }
  const { clock, events } = context
  const { backlogs } = await changeSchedule(context, caller, id, options, async (tx, schedule, now) => {
    if (schedule.state !== 'active') throw stateConflict(schedule, 'active')
    const backlogs = await closeDueSlots(tx, context, { schedules: [schedule], reason: 'paused', now })
    await skipWaitingSlots(tx, { scheduleIds: [id], now: clock.databaseNow() })
    await pauseSchedule(tx, { id, actor: caller.subject, reason, now: new Date(now) })
    return { change: 'paused', reason, backlogs }
  })
  events.emit('schedule.paused', { ...changeEvent(caller, id), reason })
  await writeBacklogs(context, caller, backlogs)
  return get(context, caller, id)
}

export async function resume(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  options: ChangeOptions,
): Promise<Schedule> {
  await changeSchedule(context, caller, id, options, async (tx, schedule, now) => {
    if (schedule.state !== 'paused') throw stateConflict(schedule, 'paused')
    const cadence = context.cadences.read(JSON.stringify(schedule.cadence))
    const { policy, runCount } = schedule
    // Its runs may have been used up, or its limit lowered, during the pause.
    const next = isUsedUp(policy, runCount)
      ? NOT_DUE
      : nextDueAfter(cadence, now, { id, spreadSeconds: policy.spreadSeconds })
    await resumeSchedule(tx, { id, ...next, actor: caller.subject, now: new Date(now) })
    return { change: 'resumed' }
  })
  context.events.emit('schedule.resumed', changeEvent(caller, id))
  return get(context, caller, id)
}

function stateConflict({ state }: Schedule, expected: ScheduleState): CarillonError {
  return new CarillonError('state_conflict', `expected a schedule that is ${expected}, got one that is ${state}`)
}

/** Reasons that start with `auto:` are reserved: the scheduler gives them when it pauses a schedule itself. */
function isReason(reason: unknown): boolean {
  if (typeof reason !== 'string' || reason.length > PAUSE_REASON_MAX_LENGTH || !isStorable(reason)) return false
  return reason.trim() !== '' && !reason.trimStart().startsWith('auto:')
}
