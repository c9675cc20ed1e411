import type { Caller } from '../caller.ts'
import type { Schedule, ScheduleChange } from '../schedule.ts'
import { listChanges } from '../store/run-records.ts'
import { findSchedule, listSchedules } from '../store/schedule-records.ts'
import { isUuid } from '../uuid.ts'
import { checkedCount, checkedId, checkedState, checkedText, PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { scheduleNotFound } from './refusals.ts'
import { within, type SchedulerContext } from './scheduler-context.ts'
import type { ListOptions } from './scheduler-options.ts'

export async function get({ db }: SchedulerContext, caller: Caller, id: string): Promise<Schedule> {
  const schedule = isUuid(id) ? await findSchedule(db, { ...within(caller), id }) : undefined
  if (schedule === undefined) throw scheduleNotFound(id)
  return schedule
}

export async function list({ db }: SchedulerContext, caller: Caller, options: ListOptions): Promise<Schedule[]> {
  return listSchedules(db, {
    ...within(caller),
    state: checkedState(options.state, 'state'),
    targetKind: checkedText(options.targetKind, 'targetKind'),
    nameContains: checkedText(options.nameContains, 'nameContains'),
    before: checkedId(options.before, 'before'),
    limit: checkedCount(options.limit ?? PAGE_DEFAULT, PAGE_MAX, 'limit'),
  })
}

export async function history(context: SchedulerContext, caller: Caller, id: string): Promise<ScheduleChange[]> {
  await get(context, caller, id)
  return listChanges(context.db, { ...within(caller), scheduleId: id })
}
