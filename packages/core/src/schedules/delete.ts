import { revokeOwnGrants } from '../access/grants.ts'
import type { Tx } from '../db/database.ts'
import { readCurrentTime } from '../db/now.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { cancelRuns, endWaitingRuns } from '../ledger/open-runs.ts'
import type { Schedule } from '../ledger/records.ts'
import { listOpenRuns } from '../ledger/runs.ts'
import { isUnderWay } from '../policy/overlap.ts'
import { changeSchedule, closeDueSlots, transactWithMonths, writeBacklogs } from './change.ts'
import { changeEvent, type SchedulerContext } from './context.ts'
import type { ChangeOptions } from './options.ts'
import { deleteSchedules, uncountUntried } from './store/schedule-writes.ts'
import { lockProject } from './store/schedules.ts'

export async function deleteSchedule(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  options: ChangeOptions,
): Promise<void> {
  const { backlogs } = await changeSchedule(context, caller, id, options, async (tx, schedule, now) => ({
    change: 'deleted',
    backlogs: await deleteLocked(context, tx, caller, [schedule], now),
  }))
  context.events.emit('schedule.deleted', changeEvent(caller, id))
  await writeBacklogs(context, caller, backlogs)
}

export async function deleteProject(context: SchedulerContext, caller: Caller): Promise<{ readonly deleted: number }> {
  const { ids, backlogs } = await transactWithMonths(context, caller, async (tx) => {
    const schedules = await lockProject(tx, scopeOf(caller))
    if (schedules.length === 0) return { ids: [], backlogs: [] }
    const now = await readCurrentTime(tx, context.clock.databaseNow())
    const ids = schedules.map(({ id }) => id)
    const backlogs = await deleteLocked(context, tx, caller, schedules, now)
    await insertChanges(tx, {
      scheduleIds: ids,
      change: 'deleted',
      actor: caller.subject,
      reason: 'project deleted',
      now: new Date(now),
    })
    return { ids, backlogs }
  })
  for (const id of ids) context.events.emit('schedule.deleted', changeEvent(caller, id))
  await writeBacklogs(context, caller, backlogs)
  return { deleted: ids.length }
}

async function deleteLocked(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  schedules: readonly Schedule[],
  now: number,
): Promise<readonly string[]> {
  const ids = schedules.map(({ id }) => id)
  const backlogs = await closeDueSlots(tx, context, { schedules, reason: 'superseded', now })
  await cancelWaiting(context, tx, caller.subject, ids)
  const [actor, at] = [caller.subject, new Date(now)]
  await deleteSchedules(tx, { ids, actor, now: at })
  await revokeOwnGrants(tx, { scheduleIds: ids, actor, now: at })
  return backlogs
}

/** Cancels the runs that wait for a worker, for their turn or for a retry, and those that are detached. */
async function cancelWaiting(
  { clock }: SchedulerContext,
  tx: Tx,
  actor: string,
  scheduleIds: readonly string[],
): Promise<void> {
  const open = await listOpenRuns(tx, { scheduleIds })
  const detached = open.filter(({ waitsFor }) => waitsFor === 'completion').map(({ id }) => id)
  if (detached.length > 0) await cancelRuns(tx, { runIds: detached, actor, now: clock.databaseNow() })
  const runIds = open.filter((run) => !isUnderWay(run)).map(({ id }) => id)
  if (runIds.length === 0) return
  await uncountUntried(tx, { ended: await endWaitingRuns(tx, { runIds, end: 'cancelled', now: clock.databaseNow() }) })
}
