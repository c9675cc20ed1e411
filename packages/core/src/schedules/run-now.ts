import { SYSTEM_SUBJECT, type OverlapPolicy } from '@carillon/api'

import { findGrant } from '../access/grants.ts'
import { listRemoved } from '../access/members.ts'
import { searchSlots, type ParsedCadence } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import type { NewLine } from '../db/new-lines.ts'
import { notifyDueRun } from '../db/notify.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { insertLines, newLine } from '../ledger/lines.ts'
import { endOpenRuns } from '../ledger/open-runs.ts'
import type { Run, Schedule } from '../ledger/records.ts'
import { getRun, listOpenRuns } from '../ledger/runs.ts'
import { checkGrant } from '../policy/grant.ts'
import { countSuperseded, decideOverlap, findBlockingRun, type OpenRun } from '../policy/overlap.ts'
import { isUsedUp } from '../policy/schedule-policy.ts'
import { closeDueSlots, withLocked, writeBacklogs } from './change.ts'
import { changeEvent, type SchedulerContext } from './context.ts'
import { refusedGrantText } from './grant-choice.ts'
import { completeSchedule, countManualRun } from './store/schedule-writes.ts'

/** How far back `insertManualRun` searches for a free millisecond. If none is free, the call fails with `state_conflict`. */
const LOOK_BACK_MS = 10_000

export async function runNow(context: SchedulerContext, caller: Caller, id: string): Promise<Run> {
  const { transact, clock, cadences } = context
  const { runId, isCompleted, backlogs } = await withLocked(context, caller, id, async (tx, schedule, now) => {
    const databaseNow = clock.databaseNow()
    requireRunsLeft(schedule)
    await requireUsableGrant(context, tx, schedule, now)
    const open = await listOpenRuns(tx, { scheduleIds: [id] })
    const { decision, ...plan } = decideOverlap({ policy: schedule.policy.overlap, open })
    if (decision === 'skip') {
      throw overlapRefused(schedule.policy.overlap, findBlockingRun({ policy: schedule.policy.overlap, open }))
    }
    await endOpenRuns(tx, [plan], databaseNow)
    const superseded = countSuperseded(plan.supersede)
    await countManualRun(tx, { id, ...superseded })
    const waitsFor = decision === 'run' ? 'worker' : 'turn'
    const cadence = cadences.read(JSON.stringify(schedule.cadence))
    const run = await insertManualRun(tx, { schedule, cadence, waitsFor, now, databaseNow })
    await insertChanges(tx, {
      scheduleIds: [id],
      change: 'run_requested',
      scheduledFor: run.scheduledFor,
      actor: caller.subject,
      reason: null,
      now: new Date(now),
    })
    if (waitsFor === 'worker') await notifyDueRun(tx, { runId: run.id })
    const runCount = schedule.runCount + 1 - superseded.untried
    const isLast = schedule.state !== 'completed' && isUsedUp(schedule.policy, runCount)
    const backlogs = isLast ? await completeUsedUp(context, tx, schedule, now) : []
    return { runId: run.id, isCompleted: isLast, backlogs }
  })
  if (isCompleted) context.events.emit('schedule.completed', { ...changeEvent(caller, id), actor: SYSTEM_SUBJECT })
  await writeBacklogs(context, caller, backlogs)
  return transact(caller, (tx) => getRun(tx, { ...scopeOf(caller), id: runId }))
}

function requireRunsLeft({ policy, runCount }: Schedule): void {
  if (!isUsedUp(policy, runCount)) return
  const found = `one that has used up its limit of ${policy.runLimit} runs`
  throw new CarillonError('state_conflict', `expected a schedule with runs left, got ${found}: raise policy.runLimit`)
}

/** Completes a schedule whose last run was just requested. Slots that are due get their lines first: none of them runs any more (I6). */
async function completeUsedUp(
  context: SchedulerContext,
  tx: Tx,
  schedule: Schedule,
  now: number,
): Promise<readonly string[]> {
  const backlogs = await closeDueSlots(tx, context, { schedules: [schedule], reason: 'superseded', now })
  await completeSchedule(tx, { id: schedule.id })
  const change = { change: 'completed', actor: SYSTEM_SUBJECT, reason: null, now: new Date(now) } as const
  await insertChanges(tx, { scheduleIds: [schedule.id], ...change })
  return backlogs
}

function overlapRefused(policy: OverlapPolicy, blocking: OpenRun | undefined): CarillonError {
  const [expected, why] =
    policy === 'queue'
      ? ['no run that waits for its turn', 'at most one run may wait for its turn (overlap: queue)']
      : ['no run that is under way or waits to start', 'runs must not overlap (overlap: forbid)']
  const found = blocking === undefined ? 'one' : `the run ${blocking.id}`
  return new CarillonError('overlap', `expected ${expected}, because ${why}, got ${found}: wait for it, or cancel it`)
}

/**
 * Writes the line of a run-now. Its slot is the millisecond of the request, or else the nearest earlier one that is free: no line has
 * it and it is no slot of the cadence. Every run needs an idempotency key of its own (I5), and a run-now at a slot of the cadence would
 * prevent the run of that slot (I2). Later milliseconds are not tried: slots of the cadence may still come due there.
 * @param p.databaseNow an instant that a test sets; null: Postgres' clock
 */
async function insertManualRun(
  tx: Tx,
  p: {
    schedule: Schedule
    cadence: ParsedCadence
    waitsFor: 'turn' | 'worker'
    now: number
    databaseNow: Date | null
  },
): Promise<Pick<NewLine, 'id' | 'scheduledFor'>> {
  const { schedule, cadence } = p
  const waits = { for: p.waitsFor, targetKind: schedule.target.kind }
  for (let slot = p.now; slot > p.now - LOOK_BACK_MS; slot -= 1) {
    if (searchSlots('cadence', () => cadence.rule.next(slot - 1)) === slot) continue
    const run = newLine(schedule, { slot, state: 'pending', waits, trigger: 'manual' }, p.now)
    const written = await insertLines(tx, { lines: [run], workerId: null, onConflict: 'keep', now: p.databaseNow })
    if (written.has(run.id)) return run
  }
  const expected = `at most ${LOOK_BACK_MS} runs of a schedule within ${LOOK_BACK_MS / 1000} seconds`
  throw new CarillonError('state_conflict', `expected ${expected}, got more: try again later`)
}

/** I8: a run-now acts by the grant of its schedule, as a slot does. */
async function requireUsableGrant(
  { targets }: SchedulerContext,
  tx: Tx,
  schedule: Schedule,
  now: number,
): Promise<void> {
  const { tenantId, projectId, grantId, target } = schedule
  const grant = await findGrant(tx, { tenantId, projectId, id: grantId })
  const handler = targets.get(target.kind)
  const spec = handler?.schema.safeParse(target)
  // If the grant or the target cannot be read here, the run is still written: its attempt then fails and says why.
  if (grant === undefined || handler === undefined || spec?.success !== true) return
  const subjects = [schedule.ownerSubject, grant.subject]
  const [removed] = await listRemoved(tx, { tenantId, projectId, subjects })
  if (removed !== undefined) {
    const message = `expected an owner with access to this project, got ${removed}, a removed member: put the member back first`
    throw new CarillonError('grant_invalid', message)
  }
  const requiredScope = handler.requiredScope(spec.data)
  const problem = checkGrant({ grant, now, requiredScope })
  if (problem !== null) throw new CarillonError('grant_invalid', refusedGrantText(problem, requiredScope))
}
