import type { Caller } from '../caller.ts'
import { CarillonError } from '../errors.ts'
import { endOpenRuns } from '../keeper/begin-batch.ts'
import { checkGrant } from '../policy/grant.ts'
import { decideOverlap } from '../policy/overlap.ts'
import type { Attempt, Run, Schedule } from '../schedule.ts'
import { transact, type Tx } from '../store/database.ts'
import { findGrant } from '../store/grants.ts'
import { notifyCancel } from '../store/notifications.ts'
import { findRun, listAttempts, listOpenRuns, listRuns } from '../store/run-records.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { countManualRun } from '../store/schedule-writes.ts'
import { endWaitingRuns, findPendingRuns, requestCancel } from '../store/waiting-runs.ts'
import { isUuid } from '../uuid.ts'
import { checkedCount, checkedInstant, PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { insertManualRun } from './manual-run.ts'
import { runNotFound } from './refusals.ts'
import { cadenceOf } from './schedule-cadence.ts'
import { withLocked } from './schedule-change.ts'
import { get } from './schedule-reads.ts'
import { within, type SchedulerContext } from './scheduler-context.ts'
import type { RunPage } from './scheduler-options.ts'

export async function getRun(
  { db }: SchedulerContext,
  caller: Caller,
  runId: string,
): Promise<Run & { readonly attempts: readonly Attempt[] }> {
  const run = isUuid(runId) ? await findRun(db, { ...within(caller), id: runId }) : undefined
  if (run === undefined) throw runNotFound(runId)
  return { ...run, attempts: await listAttempts(db, run) }
}

export async function listRunsOf(
  context: SchedulerContext,
  caller: Caller,
  scheduleId: string,
  options: RunPage,
): Promise<Run[]> {
  await get(context, caller, scheduleId)
  const limit = checkedCount(options.limit ?? PAGE_DEFAULT, PAGE_MAX, 'limit')
  const before = checkedInstant(options.before, 'before')
  return listRuns(context.db, { ...within(caller), scheduleId, before, limit })
}

export async function runNow(context: SchedulerContext, caller: Caller, id: string): Promise<Run> {
  const { clock, jobs } = context
  const runId = await withLocked(context, caller, id, async (tx, schedule, now) => {
    const databaseNow = clock.databaseNow()
    await requireGrant(tx, schedule, now)
    const open = await listOpenRuns(tx, { scheduleIds: [id] })
    const { decision, ...plan } = decideOverlap({ policy: schedule.policy.overlap, open: open.map(toOpenRun) })
    if (decision === 'skip') {
      const message = `another run is under way (${open[0]?.id ?? 'unknown'}), and the policy forbids two: wait or cancel it`
      throw new CarillonError('overlap', message)
    }
    await endOpenRuns(tx, jobs, [plan], databaseNow)
    await countManualRun(tx, { id, failures: plan.supersede.length })
    const run = await insertManualRun(tx, { schedule, cadence: cadenceOf(schedule), now, databaseNow })
    if (decision === 'run') {
      const { scheduledFor } = run
      await jobs.enqueue(tx, [{ scheduleId: id, scheduledFor, targetKind: schedule.target.kind, runAt: null }])
    }
    return run.id
  })
  return getRun(context, caller, runId)
}

export async function cancel(context: SchedulerContext, caller: Caller, runId: string): Promise<Run> {
  const { db, clock, jobs } = context
  const { scheduleId } = await getRun(context, caller, runId)
  await transact(db, clock, async (tx) => {
    const now = clock.databaseNow()
    await lockSchedules(tx, { scheduleIds: [scheduleId] })
    const run = await findRun(tx, { ...within(caller), id: runId })
    if (run === undefined) throw runNotFound(runId)
    if (run.state === 'running') {
      await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: [runId], actor: caller.subject, now }) })
      return
    }
    const ended = await endWaitingRuns(tx, { runIds: [runId], state: 'cancelled', reason: null, now })
    if (ended.length === 0) {
      throw new CarillonError('state_conflict', `expected a run that is not over, got one that is ${run.state}`)
    }
    await jobs.withdraw(tx, ended)
    const freed = await findPendingRuns(tx, { scheduleIds: [scheduleId] })
    await jobs.enqueue(
      tx,
      freed.map((slot) => ({ ...slot, runAt: null })),
    )
  })
  return getRun(context, caller, runId)
}

/** I8: a run-now acts by the grant of its schedule, as a slot does. */
async function requireGrant(tx: Tx, { tenantId, projectId, grantId }: Schedule, now: number): Promise<void> {
  if (grantId === null) return
  const grant = (await findGrant(tx, { tenantId, projectId, id: grantId })) ?? null
  const problem = checkGrant({ grant, now, requiredScope: null })
  if (problem === null) return
  const message = `expected a grant that carries a run, got one that is ${problem.replace('grant_', '')}: renew it first`
  throw new CarillonError('grant_invalid', message)
}

function toOpenRun({ id, state, trigger }: Run): {
  id: string
  state: 'pending' | 'running' | 'retrying'
  trigger: Run['trigger']
} {
  return { id, state: state as 'pending' | 'running' | 'retrying', trigger }
}
