import type { Tx } from '../db/database.ts'
import { lockSchedules } from '../db/locks.ts'
import { notifyDue } from '../db/notify.ts'
import { readCurrentTime } from '../db/now.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { cancelRuns, endWaitingRuns, endTurnWait } from '../ledger/open-runs.ts'
import type { Run } from '../ledger/records.ts'
import { getRun } from '../ledger/runs.ts'
import type { SchedulerContext } from './context.ts'
import { uncountUntried } from './store/schedule-writes.ts'

/**
 * Cancels a waiting run at once. Asks the worker of a running run to abort the call to the target; a detached run is ended by a worker
 * that serves its kind. A further request for the same running
 * run changes nothing, so the history of the schedule does not record it.
 */
export async function cancel({ transact, clock }: SchedulerContext, caller: Caller, runId: string): Promise<Run> {
  const key = { ...scopeOf(caller), id: runId }
  await transact(caller, async (tx) => {
    const { scheduleId } = await getRun(tx, key)
    await lockSchedules(tx, { scheduleIds: [scheduleId] })
    // Read again: the run may have changed before the lock was granted.
    const run = await getRun(tx, key)
    if (!(await cancelLocked(tx, caller, run, clock.databaseNow()))) return
    await insertChanges(tx, {
      scheduleIds: [scheduleId],
      change: 'run_cancelled',
      scheduledFor: run.scheduledFor,
      actor: caller.subject,
      reason: null,
      now: new Date(await readCurrentTime(tx, clock.databaseNow())),
    })
  })
  return transact(caller, (tx) => getRun(tx, key))
}

/**
 * Cancels a run whose schedule is locked.
 * @param now an instant that a test sets; null: Postgres' clock
 * @returns false if nothing changed, because the cancellation of the run was requested before
 */
async function cancelLocked(
  tx: Tx,
  { subject }: Caller,
  { id, scheduleId, state }: Run,
  now: Date | null,
): Promise<boolean> {
  if (state === 'running' || state === 'detached') {
    return (await cancelRuns(tx, { runIds: [id], actor: subject, now })) > 0
  }
  const ended = await endWaitingRuns(tx, { runIds: [id], end: 'cancelled', now })
  if (ended.length === 0) {
    throw new CarillonError('state_conflict', `expected an open run, got one that is ${state}`)
  }
  await uncountUntried(tx, { ended })
  await notifyDue(tx, { lanes: await endTurnWait(tx, { scheduleIds: [scheduleId], now }) })
  return true
}
