import type { Clock } from '../clock.ts'
import { claimDue, type LaneFrom, type LanePlace, type LockedSchedule } from '../store/agenda.ts'
import { advanceOrdinary, advanceSchedules, findTaken, type OrdinaryAdvance } from '../store/begin.ts'
import { readClaimed, type ClaimedSchedule } from '../store/claimed-schedules.ts'
import type { Db, Tx } from '../store/database.ts'
import { ensureMonthsOf, MissingMonthError } from '../store/missing-month.ts'
import type { NewRun } from '../store/new-run.ts'
import { notifyCancel } from '../store/notifications.ts'
import { readRights, type Rights } from '../store/rights.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { transactSending, waitUntil, type Sent } from '../store/sent-transaction.ts'
import { SQLSTATE, sqlStateOf } from '../store/sqlstate.ts'
import type { TakenRun } from '../store/taken-run.ts'
import { endWaitingRuns, requestCancel, skipWaitingSlots } from '../store/waiting-runs.ts'
import { isOrdinary, planBegin, withoutTaken, type BeginPlan } from './begin-plan.ts'
import type { SlotBook } from './slot-book.ts'

export interface BeginDeps {
  readonly db: Db
  readonly clock: Clock
  readonly book: SlotBook
  /** For how long the ledger remembers. */
  readonly retentionMs: number
}

export interface BegunBatch {
  /** The transaction's now. */
  readonly now: number
  readonly plans: readonly BeginPlan[]
  /** What runs now, under this worker's lease. */
  readonly begun: readonly TakenRun[]
  /** By what right they act, as it was found once they had begun. */
  readonly rights: Rights | null
  /** Up to where lanes were claimed. */
  readonly last: ReadonlyMap<string, LanePlace>
}

/*
 * The lines of slots that an outage left behind are written in portions: neither one schedule nor many of them hold a batch,
 * nor the rest of the process, for long.
 */
const SLOTS_PER_BATCH = 10_000
const SLOTS_PER_SCHEDULE = 1000

interface BatchOptions {
  readonly lanes: readonly LaneFrom[]
  readonly perLane: number
  readonly workerId: string
  /** A slot that is at hand but has not come: all is made ready for it, and committed when it has (I10). */
  readonly slotAt: number | null
}

/**
 * BEGIN: claims due schedules, writes the line of each due slot and moves the schedules on, all in one transaction (I3).
 * A crash before its commit leaves nothing behind; one after it leaves runs under a lease that a rescuer finds.
 */
export async function beginBatch(deps: BeginDeps, options: BatchOptions): Promise<BegunBatch> {
  try {
    return await beginWithMonths(deps, options, 'refuse')
  } catch (error) {
    // Somebody wrote a line by hand, or restored one. The slot has its line; the schedule must not stumble over it for ever.
    if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
    return beginWithMonths(deps, options, 'keep')
  }
}

/** Upkeep makes months ahead; of a slot that is later than the ledger remembers, or where upkeep failed, begin does. */
async function beginWithMonths(
  deps: BeginDeps,
  options: BatchOptions,
  onConflict: 'refuse' | 'keep',
): Promise<BegunBatch> {
  const attempt = async (): Promise<BegunBatch> => {
    const { result, seen } = await transactSending(deps.db, deps.clock, {
      work: (tx) => begin(deps, tx, options, onConflict),
      look: async (db, { begun: runs }) =>
        runs.length === 0 ? null : readRights(db, { runs, now: deps.clock.databaseNow() }),
    })
    return { ...result, rights: seen ?? null }
  }
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof MissingMonthError)) throw error
    await ensureMonthsOf(deps.db, error.slots)
    return attempt()
  }
}

async function begin(
  { clock, book, retentionMs }: BeginDeps,
  tx: Tx,
  { lanes, perLane, workerId, slotAt }: BatchOptions,
  onConflict: 'refuse' | 'keep',
): Promise<Sent<Omit<BegunBatch, 'rights'>>> {
  const asked = slotAt === null ? clock.databaseNow() : new Date(slotAt)
  const isAhead = slotAt !== null
  const { now, schedules: locked, last } = await claimDue(tx, { lanes, perLane, workerId, now: asked, isAhead })
  const at = isAhead ? new Date(now) : asked
  if (locked.length === 0) {
    return { result: { now, plans: [], begun: [], last }, last: Promise.resolve(), notBefore: null }
  }
  const schedules = await readAsOf(tx, locked, slotAt)
  const slotsMax = Math.min(SLOTS_PER_SCHEDULE, Math.max(1, Math.floor(SLOTS_PER_BATCH / schedules.length)))
  const planned = schedules.map((schedule) =>
    planBegin(schedule, { book, now, ledgerFrom: now - retentionMs, slotsMax }),
  )
  const plans = onConflict === 'refuse' ? planned : await leaveTaken(tx, planned)
  await endOpenRuns(tx, plans, clock.databaseNow())
  const ordinary = onConflict === 'refuse' ? plans.filter(isOrdinary) : []
  const others = ordinary.length === 0 ? plans : plans.filter((plan) => !isOrdinary(plan))
  const stamp = { now: clock.databaseNow(), notBefore: slotAt === null ? null : new Date(slotAt) }
  const written = await advanceOthers(tx, others, { workerId, onConflict, ...stamp })
  await giveUpWaiting(tx, others, clock.databaseNow())
  await recordChanges(tx, others, at)
  const advances = ordinary.flatMap(ordinaryAdvance)
  for (const { run } of advances) written.add(run.id)
  const begun = plans.flatMap((plan) => takenOf(plan, { workerId, written, now }))
  // Last, so that nobody waits for its answer: mostly it is all there is.
  const sent = advances.length === 0 ? Promise.resolve() : advanceOrdinary(tx, { advances, workerId, ...stamp })
  return { result: { now, plans, begun, last }, last: sent, notBefore: slotAt }
}

/** A run that ends before the slot is no overlap: where one is open, nothing is decided before its instant. */
async function readAsOf(tx: Tx, locked: readonly LockedSchedule[], slotAt: number | null): Promise<ClaimedSchedule[]> {
  const schedules = await readClaimed(tx, { schedules: locked })
  if (slotAt === null || schedules.every(({ open }) => open.length === 0)) return schedules
  await waitUntil(tx, slotAt)
  return readClaimed(tx, { schedules: locked })
}

/**
 * Moves on the schedules of which more is to be written than most need.
 * @returns the ids of what was written
 */
async function advanceOthers(
  tx: Tx,
  plans: readonly BeginPlan[],
  p: { workerId: string; onConflict: 'refuse' | 'keep'; now: Date | null; notBefore: Date | null },
): Promise<Set<string>> {
  if (plans.length === 0) return new Set()
  const advances = plans.map(({ advance }) => advance)
  return advanceSchedules(tx, { ...p, advances, runs: plans.flatMap(({ runs }) => runs) })
}

function ordinaryAdvance({ runs: [run], advance: { nextSlotAt, dueAt } }: BeginPlan): OrdinaryAdvance[] {
  return run === undefined || nextSlotAt === null || dueAt === null ? [] : [{ run, nextSlotAt, dueAt }]
}

async function leaveTaken(tx: Tx, plans: readonly BeginPlan[]): Promise<BeginPlan[]> {
  const taken = await findTaken(tx, { runs: plans.flatMap(({ runs }) => runs) })
  return plans.map((plan) => withoutTaken(plan, taken))
}

/** Ends or cancels what the new runs take the place of. */
export async function endOpenRuns(
  tx: Tx,
  plans: readonly Pick<BeginPlan, 'supersede' | 'cancel'>[],
  now: Date | null,
): Promise<void> {
  const runIds = plans.flatMap(({ supersede }) => supersede.map(({ id }) => id))
  if (runIds.length > 0) await endWaitingRuns(tx, { runIds, end: 'superseded', now })
  const cancel = plans.flatMap((plan) => plan.cancel)
  if (cancel.length > 0) {
    await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: cancel, actor: 'system:carillon', now }) })
  }
}

/** A schedule that pauses itself lets nothing begin any more, as one that a person pauses. */
async function giveUpWaiting(tx: Tx, plans: readonly BeginPlan[], now: Date | null): Promise<void> {
  const scheduleIds = plans.filter(({ advance }) => advance.state === 'paused').map(({ schedule }) => schedule.id)
  if (scheduleIds.length > 0) await skipWaitingSlots(tx, { scheduleIds, now })
}

/** The agenda has no history: that a schedule completed, or paused itself, is written down. */
async function recordChanges(tx: Tx, plans: readonly BeginPlan[], now: Date | null): Promise<void> {
  const byReason = Map.groupBy(
    plans.filter(({ advance }) => advance.state !== 'active'),
    ({ advance }) => advance.pausedReason,
  )
  for (const [reason, ended] of byReason) {
    const scheduleIds = ended.map(({ schedule }) => schedule.id)
    const change = reason === null ? 'completed' : 'paused'
    await insertChanges(tx, { scheduleIds, change, actor: 'system:carillon', reason, now })
  }
}

function takenOf(
  { schedule, runs }: BeginPlan,
  { workerId, written, now }: { workerId: string; written: ReadonlySet<string>; now: number },
): TakenRun[] {
  return runs
    .filter((run: NewRun) => run.state === 'running' && written.has(run.id))
    .map((run) => ({
      runId: run.id,
      scheduleId: schedule.id,
      scheduledFor: run.scheduledFor,
      tenantId: schedule.tenantId,
      projectId: schedule.projectId,
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
