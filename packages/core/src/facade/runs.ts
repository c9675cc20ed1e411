import type { Caller } from '../caller.ts'
import { CarillonError } from '../errors.ts'
import { endOpenRuns } from '../keeper/begin-batch.ts'
import { placeOf } from '../place.ts'
import { checkGrant, type GrantProblem } from '../policy/grant.ts'
import { countSuperseded, decideOverlap } from '../policy/overlap.ts'
import type { Attempt, Run, Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { findGrant } from '../store/grants.ts'
import { notifyCancel, notifyDue, notifyDueRun } from '../store/notifications.ts'
import { findRemoved } from '../store/rights.ts'
import { findRun, listAttempts, listOpenRuns, listRuns } from '../store/run-records.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { countManualRun, uncountUntried } from '../store/schedule-writes.ts'
import { endWaitingRuns, freeWaitingRuns, requestCancel } from '../store/waiting-runs.ts'
import { isUuid } from '../uuid.ts'
import { checkedCount, checkedInstant, PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { insertManualRun } from './manual-run.ts'
import { runNotFound } from './refusals.ts'
import { cadenceOf } from './schedule-cadence.ts'
import { withLocked } from './schedule-change.ts'
import { getIn } from './schedule-reads.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { RunPage } from './scheduler-options.ts'

type RunWithAttempts = Run & { readonly attempts: readonly Attempt[] }

export async function getRun({ transact }: SchedulerContext, caller: Caller, runId: string): Promise<RunWithAttempts> {
  return transact(caller, (tx) => getRunIn(tx, caller, runId))
}

/** In a transaction that is under way. */
async function getRunIn(tx: Tx, caller: Caller, runId: string): Promise<RunWithAttempts> {
  const run = isUuid(runId) ? await findRun(tx, { ...placeOf(caller), id: runId }) : undefined
  if (run === undefined) throw runNotFound(runId)
  return { ...run, attempts: await listAttempts(tx, run) }
}

export async function listRunsOf(
  context: SchedulerContext,
  caller: Caller,
  scheduleId: string,
  options: RunPage,
): Promise<Run[]> {
  const limit = checkedCount(options.limit ?? PAGE_DEFAULT, PAGE_MAX, 'limit')
  const before = checkedInstant(options.before, 'before')
  return context.transact(caller, async (tx) => {
    await getIn(tx, caller, scheduleId)
    return listRuns(tx, { ...placeOf(caller), scheduleId, before, limit })
  })
}

export async function runNow(context: SchedulerContext, caller: Caller, id: string): Promise<Run> {
  const { clock } = context
  const runId = await withLocked(context, caller, id, async (tx, schedule, now) => {
    const databaseNow = clock.databaseNow()
    await requireGrant(context, tx, schedule, now)
    const open = await listOpenRuns(tx, { scheduleIds: [id] })
    const { decision, ...plan } = decideOverlap({ policy: schedule.policy.overlap, open })
    if (decision === 'skip') {
      const message = `another run is under way (${open[0]?.id ?? 'unknown'}), and the policy forbids two: wait or cancel it`
      throw new CarillonError('overlap', message)
    }
    await endOpenRuns(tx, [plan], databaseNow)
    await countManualRun(tx, { id, ...countSuperseded(plan.supersede) })
    const waitsFor = decision === 'run' ? 'worker' : 'turn'
    const run = await insertManualRun(tx, { schedule, cadence: cadenceOf(schedule), waitsFor, now, databaseNow })
    if (waitsFor === 'worker') await notifyDueRun(tx, { runId: run.id })
    return run.id
  })
  return getRun(context, caller, runId)
}

export async function cancel(context: SchedulerContext, caller: Caller, runId: string): Promise<Run> {
  const { transact, clock } = context
  await transact(caller, async (tx) => {
    const now = clock.databaseNow()
    const { scheduleId } = await getRunIn(tx, caller, runId)
    await lockSchedules(tx, { scheduleIds: [scheduleId] })
    // Again, as it is under the lock.
    const run = await getRunIn(tx, caller, runId)
    if (run.state === 'running') {
      await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: [runId], actor: caller.subject, now }) })
      return
    }
    const ended = await endWaitingRuns(tx, { runIds: [runId], end: 'cancelled', now })
    if (ended.length === 0) {
      throw new CarillonError('state_conflict', `expected a run that is not over, got one that is ${run.state}`)
    }
    await uncountUntried(tx, { ended })
    await notifyDue(tx, { lanes: await freeWaitingRuns(tx, { scheduleIds: [scheduleId], now }) })
  })
  return getRun(context, caller, runId)
}

/** I8: a run-now acts by the grant of its schedule, as a slot does. */
async function requireGrant({ targets }: SchedulerContext, tx: Tx, schedule: Schedule, now: number): Promise<void> {
  const { tenantId, projectId, grantId, target } = schedule
  const grant = await findGrant(tx, { tenantId, projectId, id: grantId })
  const handler = targets.get(target.kind)
  const spec = handler?.schema.safeParse(target)
  // What cannot be read any more is told by the attempt.
  if (grant === undefined || handler === undefined || spec?.success !== true) return
  const subjects = [schedule.ownerSubject, grant.subject]
  const removed = await findRemoved(tx, { tenantId, projectId, subjects })
  if (removed !== undefined) {
    const message = `expected an owner who may act in this project, got ${removed}, who was removed: put the member back first`
    throw new CarillonError('grant_invalid', message)
  }
  const problem = checkGrant({ grant, now, requiredScope: handler.requiredScope(spec.data) })
  if (problem === null) return
  throw new CarillonError('grant_invalid', `expected a grant that carries a run, got ${FOUND[problem]}`)
}

const FOUND: Readonly<Record<GrantProblem, string>> = {
  grant_expired: 'one that is expired: renew it first',
  grant_revoked: 'one that is revoked: give the schedule another (grantId; null is one of its own)',
  grant_scope: 'one that is too narrow: give the schedule another (grantId; null is one of its own)',
}
