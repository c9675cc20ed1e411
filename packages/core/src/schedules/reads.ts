import { expectedText, isUuid, PAGE_SIZE } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { Run, Schedule, ScheduleChange } from '../ledger/records.ts'
import { listChanges, listRuns } from '../ledger/runs.ts'
import type { SchedulerContext } from './context.ts'
import { HISTORY_PAGE, LIST_OPTIONS, RUN_PAGE, type HistoryPage, type ListOptions, type RunPage } from './options.ts'
import { findSchedule, listSchedules } from './store/schedules.ts'

export { findSchedule } from './store/schedules.ts'

export async function get({ transact }: SchedulerContext, caller: Caller, id: string): Promise<Schedule> {
  return transact(caller, (tx) => getIn(tx, caller, id))
}

/** `get` in a transaction that is already open. */
export async function getIn(tx: Tx, caller: Caller, id: string): Promise<Schedule> {
  const schedule = isUuid(id) ? await findSchedule(tx, { ...scopeOf(caller), id }) : undefined
  if (schedule === undefined) throw scheduleNotFound(id)
  return schedule
}

export async function list({ transact }: SchedulerContext, caller: Caller, options: ListOptions): Promise<Schedule[]> {
  const checked = checkedObject(options, LIST_OPTIONS)
  const { state = null, targetKind = null, nameContains = null, before = null, limit = PAGE_SIZE.default } = checked
  const query = { ...scopeOf(caller), state, targetKind, nameContains, before, limit }
  return transact(caller, (tx) => listSchedules(tx, query))
}

export async function history(
  { transact }: SchedulerContext,
  caller: Caller,
  id: string,
  options: HistoryPage,
): Promise<ScheduleChange[]> {
  const { before = null, limit = PAGE_SIZE.default } = checkedObject(options, HISTORY_PAGE)
  return transact(caller, async (tx) => {
    await getIn(tx, caller, id)
    return listChanges(tx, { ...scopeOf(caller), scheduleId: id, before, limit })
  })
}

export async function listRunsOf(
  { transact }: SchedulerContext,
  caller: Caller,
  scheduleId: string,
  options: RunPage,
): Promise<Run[]> {
  const { before = null, limit = PAGE_SIZE.default } = checkedObject(options, RUN_PAGE)
  return transact(caller, async (tx) => {
    await getIn(tx, caller, scheduleId)
    return listRuns(tx, { ...scopeOf(caller), scheduleId, before, limit })
  })
}

export function scheduleNotFound(id: string): CarillonError {
  return new CarillonError('schedule_not_found', expectedText('the id of a schedule of this project', id))
}
