import type { Caller } from '../caller.ts'
import { invalidInput } from '../errors.ts'
import type { Schedule } from '../schedule.ts'
import { pauseSchedule, resumeSchedule } from '../store/schedule-writes.ts'
import { skipWaitingSlots } from '../store/waiting-runs.ts'
import { closeDueSlots, writeBacklogs } from './due-slots.ts'
import { nextDueAfter } from './next-due.ts'
import { stateConflict } from './refusals.ts'
import { cadenceOf } from './schedule-cadence.ts'
import { changeSchedule } from './schedule-change.ts'
import { get } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'
import type { ChangeOptions } from './scheduler-options.ts'
import { isStorable } from './stored-text.ts'

const REASON_MAX = 500

export async function pause(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  { reason, ...options }: ChangeOptions & { readonly reason: string },
): Promise<Schedule> {
  if (!isReason(reason)) {
    const message = `expected a reason of 1 to ${REASON_MAX} characters that does not begin with auto:`
    throw invalidInput([{ path: 'reason', message }])
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
    const next = nextDueAfter(cadenceOf(schedule), now, id, schedule.policy.spreadSeconds)
    await resumeSchedule(tx, { id, ...next, actor: caller.subject, now: new Date(now) })
    return { change: 'resumed' }
  })
  context.events.emit('schedule.resumed', changeEvent(caller, id))
  return get(context, caller, id)
}

/** What a person may give as a reason: `auto:` is what the scheduler itself says (E-61). */
function isReason(reason: unknown): boolean {
  if (typeof reason !== 'string' || reason.length > REASON_MAX || !isStorable(reason)) return false
  return reason.trim() !== '' && !reason.trimStart().startsWith('auto:')
}
