import { SYSTEM_SUBJECT } from '@carillon/api'

import { readPermissions, type Permissions } from '../access/grants.ts'
import type { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db, Tx } from '../db/database.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { limitLockWait, type Sent, transactPipelined, waitUntil } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { withMonths } from '../ledger/lines.ts'
import { endOpenRuns, skipWaitingSlots } from '../ledger/open-runs.ts'
import { admitPlans, type AdmittedPlans } from './admission.ts'
import { isSingleRun, planBegin, withLastRun, withoutWritten, type BeginPlan } from './begin-plan.ts'
import { HOOK_LOCK_LIMIT_MS, type Hooks } from './hooks.ts'
import { applyEffects, emitEffects, type ScheduleEffectMade } from './schedule-effects.ts'
import type { Ending } from './settlement.ts'
import { advanceSchedules, advanceSingleRuns, findWritten } from './store/begin.ts'
import { claimDue, readClaimed, type Claim, type ClaimedSchedule } from './store/claim.ts'
import type { LaneFrom, LanePosition } from './store/look.ts'

export interface BeginDeps {
  readonly db: Db
  readonly clock: Clock
  readonly cadences: CadenceCache
  readonly hooks: Hooks
  /** For how long the ledger keeps its lines. */
  readonly retentionMs: number
}

export interface BegunBatch {
  /** The time by which the batch was decided (`Claim.now`). */
  readonly now: number
  readonly plans: readonly BeginPlan[]
  /** The runs that start now under this worker's lease. */
  readonly begun: readonly HeldRun[]
  /** How the attempts of some of them ended already, by run id: `admit` failed. */
  readonly endings: ReadonlyMap<string, Ending>
  /** The schedules that a hook completed or paused. */
  readonly effects: readonly ScheduleEffectMade[]
  /** Their permissions, read right after the commit; null if they could not be read. */
  readonly permissions: Permissions | null
  /** The last claimed position of each lane. */
  readonly last: ReadonlyMap<string, LanePosition>
}

/**
 * After an outage one batch writes about this many lines of missed slots, so that it does not hold its locks or this process for long.
 * The other slots stay due for the next batch.
 */
const SLOTS_PER_BATCH = 10_000
/** The same for one schedule of a batch, so that it does not delay the others. */
const SLOTS_PER_SCHEDULE = 1000

interface BeginOptions {
  readonly lanes: readonly LaneFrom[]
  readonly perLane: number
  readonly workerId: string
  /** The kind whose hooks are called; null: the lanes are of kinds without hooks. */
  readonly hookedKind: string | null
  /**
   * The instant of slots that come due in a few milliseconds: BEGIN prepares everything and commits at that instant (I10). Null if the
   * slots are due already.
   */
  readonly slotAt: number | null
}

/**
 * BEGIN: claims due schedules, writes the line of each due slot and moves the schedules to their next slots, in one transaction
 * (I3). A crash before the commit leaves nothing behind. A crash after it leaves runs under a lease, which a rescuer finds.
 */
export async function beginBatch(deps: BeginDeps, options: BeginOptions): Promise<BegunBatch> {
  try {
    return await beginWithMonths(deps, options, 'refuse')
  } catch (error) {
    // A slot has a line already, written by hand or restored. Keep that line, so that the schedule can move on.
    if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
    return beginWithMonths(deps, options, 'keep')
  }
}

async function beginWithMonths(
  deps: BeginDeps,
  options: BeginOptions,
  onConflict: 'refuse' | 'keep',
): Promise<BegunBatch> {
  const { db, clock } = deps
  const attempt = async (): Promise<BegunBatch> => {
    const { result, seen } = await transactPipelined(db, clock, {
      work: (tx) => begin(deps, tx, options, onConflict),
      look: async (connection, { begun: runs }) =>
        runs.length === 0 ? null : readPermissions(connection, { runs, now: clock.databaseNow() }),
    })
    return { ...result, permissions: seen ?? null }
  }
  return withMonths(attempt, (create) => create(db))
}

async function begin(
  deps: BeginDeps,
  tx: Tx,
  { lanes, perLane, workerId, slotAt, hookedKind }: BeginOptions,
  onConflict: 'refuse' | 'keep',
): Promise<Sent<Omit<BegunBatch, 'permissions'>>> {
  const { clock } = deps
  if (hookedKind !== null) await limitLockWait(tx, HOOK_LOCK_LIMIT_MS)
  const isAhead = slotAt !== null
  const askedAt = isAhead ? new Date(slotAt) : clock.databaseNow()
  const claim = await claimDue(tx, { lanes, perLane, workerId, now: askedAt, isAhead })
  const { now, last } = claim
  if (claim.schedules.length === 0) {
    const nothing = { plans: [], begun: [], endings: new Map<string, Ending>(), effects: [] }
    return { result: { now, ...nothing, last }, last: Promise.resolve(), notBefore: null }
  }
  const planned = planAll(deps, await readAsOf(tx, claim, slotAt), now)
  const decided = onConflict === 'refuse' ? planned : await keepWritten(tx, planned)
  // Before anything is ended or cancelled: a slot that is refused leaves open runs alone.
  const {
    plans: admitted,
    endings,
    asked,
  } = hookedKind === null ? withoutHooks(decided) : await admitPlans(tx, deps.hooks, hookedKind, decided)
  // After the admission: a slot that is refused is not the last run.
  const plans = admitted.map(withLastRun)
  await endOpenRuns(tx, plans, clock.databaseNow())
  const single = onConflict === 'refuse' ? plans.filter(isSingleRun) : []
  const others = single.length === 0 ? plans : plans.filter((plan) => !isSingleRun(plan))
  const stamp = { workerId, now: clock.databaseNow(), notBefore: isAhead ? new Date(slotAt) : null }
  const written =
    others.length === 0 ? new Set<string>() : await advanceSchedules(tx, { plans: others, onConflict, ...stamp })
  await skipWaiting(tx, others, clock.databaseNow())
  await recordChanges(tx, others, isAhead ? new Date(now) : askedAt)
  const effects = asked.size === 0 ? [] : await applyEffects(tx, asked, clock.databaseNow())
  for (const { lines } of single) written.add(lines[0].id)
  const begun = plans.flatMap((plan) => heldRunsOf(plan, { workerId, written, now }))
  // Sent last, with the commit right behind it, without waiting for its answer. Usually it is the only statement that writes.
  const sent = single.length === 0 ? Promise.resolve() : advanceSingleRuns(tx, { plans: single, ...stamp })
  return { result: { now, plans, begun, endings, effects, last }, last: sent, notBefore: slotAt }
}

/** A kind without hooks admits every run. */
function withoutHooks(plans: readonly BeginPlan[]): AdmittedPlans {
  return { plans, endings: NO_ENDINGS, asked: NO_EFFECTS }
}

const NO_ENDINGS: AdmittedPlans['endings'] = new Map()
const NO_EFFECTS: AdmittedPlans['asked'] = new Map()

/** A run that ends before the slot's instant does not overlap it, so open runs are read again at that instant. */
async function readAsOf(tx: Tx, { schedules }: Claim, slotAt: number | null): Promise<ClaimedSchedule[]> {
  const claimed = await readClaimed(tx, { schedules })
  if (slotAt === null || claimed.every(({ open }) => open.length === 0)) return claimed
  await waitUntil(tx, slotAt)
  return readClaimed(tx, { schedules })
}

function planAll(
  { cadences, retentionMs }: BeginDeps,
  schedules: readonly ClaimedSchedule[],
  now: number,
): BeginPlan[] {
  const slotsMax = Math.min(SLOTS_PER_SCHEDULE, Math.max(1, Math.floor(SLOTS_PER_BATCH / schedules.length)))
  const options = { cadences, now, ledgerFrom: now - retentionMs, slotsMax }
  return schedules.map((schedule) => planBegin(schedule, options))
}

async function keepWritten(tx: Tx, plans: readonly BeginPlan[]): Promise<BeginPlan[]> {
  const written = await findWritten(tx, { lines: plans.flatMap(({ lines }) => lines) })
  return plans.map((plan) => withoutWritten(plan, written))
}

/** A schedule that pauses itself starts no waiting run any more, as if a person had paused it. */
async function skipWaiting(tx: Tx, plans: readonly BeginPlan[], now: Date | null): Promise<void> {
  const scheduleIds = plans.filter(({ state }) => state === 'paused').map(({ schedule }) => schedule.id)
  if (scheduleIds.length > 0) await skipWaitingSlots(tx, { scheduleIds, now })
}

/** Adds an entry to the history of schedules that completed or paused themselves. */
async function recordChanges(tx: Tx, plans: readonly BeginPlan[], now: Date | null): Promise<void> {
  const byReason = Map.groupBy(
    plans.filter(({ state }) => state !== 'active'),
    ({ pausedReason }) => pausedReason,
  )
  for (const [reason, ended] of byReason) {
    const scheduleIds = ended.map(({ schedule }) => schedule.id)
    const change = reason === null ? 'completed' : 'paused'
    await insertChanges(tx, { scheduleIds, change, actor: SYSTEM_SUBJECT, reason, now })
  }
}

function heldRunsOf(
  { schedule, lines }: BeginPlan,
  { workerId, written, now }: { workerId: string; written: ReadonlySet<string>; now: number },
): HeldRun[] {
  return lines
    .filter(({ id, state }) => state === 'running' && written.has(id))
    .map(({ id, scheduledFor }) => ({
      runId: id,
      scheduleId: schedule.id,
      scheduledFor,
      tenantId: schedule.tenantId,
      projectId: schedule.projectId,
      revision: schedule.revision,
      targetKind: schedule.targetKind,
      trigger: 'schedule',
      attempt: 1,
      token: 1,
      workerId,
      startedAt: now,
      target: schedule.target,
      policy: schedule.policy,
      grant: schedule.grant,
      ownerSubject: schedule.ownerSubject,
    }))
}

/** Emits what a batch began, skipped, completed and paused. */
export function emitBegun(events: Events, { now, plans, begun, effects }: BegunBatch): void {
  if (effects.length > 0) emitEffects(events, effects)
  for (const { runId, tenantId, projectId, scheduleId, targetKind, scheduledFor } of begun) {
    const latenessMs = now - scheduledFor
    events.emit('run.began', { runId, tenantId, projectId, scheduleId, targetKind, scheduledFor, latenessMs })
  }
  for (const { schedule, state, pausedReason, lines } of plans) {
    const { tenantId, projectId, id: scheduleId, targetKind } = schedule
    for (const { reason, scheduledFor } of lines) {
      if (reason === null) continue
      events.emit('slot.skipped', { tenantId, projectId, scheduleId, targetKind, scheduledFor, reason })
    }
    if (state === 'active') continue
    const changed = { tenantId, projectId, scheduleId, actor: SYSTEM_SUBJECT }
    if (pausedReason === null) events.emit('schedule.completed', changed)
    else events.emit('schedule.paused', { ...changed, reason: pausedReason })
  }
}
