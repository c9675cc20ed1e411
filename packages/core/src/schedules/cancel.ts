import { lockSchedules } from '../db/locks.ts'
import { notifyCancel, notifyDue } from '../db/notify.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { endWaitingRuns, endTurnWait, requestCancel } from '../ledger/open-runs.ts'
import type { Run } from '../ledger/records.ts'
import { getRun } from '../ledger/runs.ts'
import type { SchedulerContext } from './context.ts'
import { uncountUntried } from './store/schedule-writes.ts'

/** Cancels a waiting run at once. Asks the worker of a running run to abort the call to the target. */
export async function cancel({ transact, clock }: SchedulerContext, caller: Caller, runId: string): Promise<Run> {
  const key = { ...scopeOf(caller), id: runId }
  await transact(caller, async (tx) => {
    const now = clock.databaseNow()
    const { scheduleId } = await getRun(tx, key)
    await lockSchedules(tx, { scheduleIds: [scheduleId] })
    // Read again: the run may have changed before the lock was granted.
    const run = await getRun(tx, key)
    if (run.state === 'running') {
      await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: [runId], actor: caller.subject, now }) })
      return
    }
    const ended = await endWaitingRuns(tx, { runIds: [runId], end: 'cancelled', now })
    if (ended.length === 0) {
      throw new CarillonError('state_conflict', `expected an open run, got one that is ${run.state}`)
    }
    await uncountUntried(tx, { ended })
    await notifyDue(tx, { lanes: await endTurnWait(tx, { scheduleIds: [scheduleId], now }) })
  })
  return transact(caller, (tx) => getRun(tx, key))
}
