import type { Caller } from '../caller.ts'
import { placeOf } from '../place.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { revokeOwnGrants } from '../store/grants.ts'
import { readClock } from '../store/now.ts'
import { listOpenRuns } from '../store/run-records.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { lockProject } from '../store/schedule-records.ts'
import { deleteSchedules } from '../store/schedule-writes.ts'
import { endWaitingRuns } from '../store/waiting-runs.ts'
import { closeDueSlots } from './due-slots.ts'
import { changeSchedule, transactWithMonths } from './schedule-change.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'
import type { ChangeOptions } from './scheduler-options.ts'

export async function deleteSchedule(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  options: ChangeOptions,
): Promise<void> {
  await changeSchedule(context, caller, id, options, async (tx, schedule, now) => {
    await deleteLocked(context, tx, caller, [schedule], now)
    return 'deleted'
  })
  context.events.emit('schedule.deleted', changeEvent(caller, id))
}

export async function deleteProject(context: SchedulerContext, caller: Caller): Promise<{ readonly deleted: number }> {
  const ids = await transactWithMonths(context, caller, async (tx) => {
    const schedules = await lockProject(tx, placeOf(caller))
    if (schedules.length === 0) return []
    const databaseNow = context.clock.databaseNow()
    const now = await readClock(tx, databaseNow)
    const scheduleIds = schedules.map(({ id }) => id)
    await deleteLocked(context, tx, caller, schedules, now)
    await insertChanges(tx, {
      scheduleIds,
      change: 'deleted',
      actor: caller.subject,
      reason: 'project deleted',
      now: databaseNow,
    })
    return scheduleIds
  })
  for (const id of ids) context.events.emit('schedule.deleted', changeEvent(caller, id))
  return { deleted: ids.length }
}

async function deleteLocked(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  schedules: readonly Schedule[],
  now: number,
): Promise<void> {
  const ids = schedules.map(({ id }) => id)
  for (const schedule of schedules) await closeDueSlots(tx, context, { schedule, reason: 'superseded', now })
  await cancelWaiting(context, tx, ids)
  const [actor, databaseNow] = [caller.subject, context.clock.databaseNow()]
  await deleteSchedules(tx, { ids, actor, now: databaseNow })
  await revokeOwnGrants(tx, { scheduleIds: ids, actor, now: databaseNow })
}

/** Cancels what waits, to start or to be retried. */
async function cancelWaiting({ clock, jobs }: SchedulerContext, tx: Tx, scheduleIds: readonly string[]): Promise<void> {
  const open = await listOpenRuns(tx, { scheduleIds })
  const runIds = open.filter(({ state }) => state !== 'running').map(({ id }) => id)
  if (runIds.length === 0) return
  const now = clock.databaseNow()
  await jobs.withdraw(tx, await endWaitingRuns(tx, { runIds, state: 'cancelled', reason: null, now }))
}
