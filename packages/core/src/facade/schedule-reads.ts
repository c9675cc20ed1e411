import type { Caller } from '../caller.ts'
import { placeOf } from '../place.ts'
import type { Schedule, ScheduleChange } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { listChanges } from '../store/run-records.ts'
import { findSchedule, listSchedules } from '../store/schedule-records.ts'
import { isUuid } from '../uuid.ts'
import { checkedCount, checkedId, checkedState, checkedText, PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { scheduleNotFound } from './refusals.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { ListOptions } from './scheduler-options.ts'

export async function get({ transact }: SchedulerContext, caller: Caller, id: string): Promise<Schedule> {
  return transact(caller, (tx) => getIn(tx, caller, id))
}

/** In a transaction that is under way. */
export async function getIn(tx: Tx, caller: Caller, id: string): Promise<Schedule> {
  const schedule = isUuid(id) ? await findSchedule(tx, { ...placeOf(caller), id }) : undefined
  if (schedule === undefined) throw scheduleNotFound(id)
  return schedule
}

export async function list({ transact }: SchedulerContext, caller: Caller, options: ListOptions): Promise<Schedule[]> {
  const query = {
    ...placeOf(caller),
    state: checkedState(options.state, 'state'),
    targetKind: checkedText(options.targetKind, 'targetKind'),
    nameContains: checkedText(options.nameContains, 'nameContains'),
    before: checkedId(options.before, 'before'),
    limit: checkedCount(options.limit ?? PAGE_DEFAULT, PAGE_MAX, 'limit'),
  }
  return transact(caller, (tx) => listSchedules(tx, query))
}

export async function history({ transact }: SchedulerContext, caller: Caller, id: string): Promise<ScheduleChange[]> {
  return transact(caller, async (tx) => {
    await getIn(tx, caller, id)
    return listChanges(tx, { ...placeOf(caller), scheduleId: id })
  })
}
