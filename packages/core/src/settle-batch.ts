import type { Clock } from './clock.ts'
import { AUTO_PAUSE_REASON } from './policy/auto-pause.ts'
import { transact, type Db, type Tx } from './store/database.ts'
import { notifyDue, NOTIFY_WITHIN_MS } from './store/notifications.ts'
import { lockFreeSchedules, lockSchedules } from './store/schedule-lock.ts'
import { settleRuns, type Settled, type Settlement } from './store/settle.ts'
import { isCausedByRow, SQLSTATE, sqlStateOf } from './store/sqlstate.ts'
import { findWaitFacts, freeWaitingRuns, skipWaitingSlots, type WaitFacts } from './store/waiting-runs.ts'

/** A settlement, and whether a run of the same schedule may be waiting for this one's end. */
export interface PendingSettlement {
  readonly settlement: Settlement
  readonly mayFree: boolean
}

/** True if settling needs no lock: no retry, no failure to count, no run that waits for this one's end. */
export function isPlain({ settlement, mayFree }: PendingSettlement): boolean {
  return settlement.state === 'succeeded' && !mayFree
}

export interface SettleDeps {
  readonly db: Db
  readonly clock: Clock
}

interface SettleOptions {
  /** What becomes of settlements whose schedule somebody holds: wait for it, or leave them out. @default 'wait' */
  readonly ifHeld?: 'wait' | 'leave'
}

/**
 * I4: writes what attempts came to, with everything that follows from it, in one transaction: the attempt, the run and when it is
 * tried again, the counts, auto-pause, and the run that waited for its turn. At most one settlement per schedule.
 * @returns what was written; a settlement whose fence no longer holds is missing (I12)
 */
export async function settleBatch(
  deps: SettleDeps,
  batch: readonly PendingSettlement[],
  options: SettleOptions = {},
): Promise<Settled[]> {
  try {
    return await settle(deps, batch, 'refuse', options)
  } catch (error) {
    // Somebody wrote an attempt by hand, or restored one. It stays, and no other settlement waits behind it for ever.
    if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
    return settle(deps, batch, 'keep', options)
  }
}

/**
 * Settles a batch; if a row of it is at fault, in halves, until that row stands alone. It is told of and left out, so that the
 * others do not wait behind it.
 */
export async function settleApart(
  deps: SettleDeps,
  batch: readonly PendingSettlement[],
  { onFailure, ...options }: SettleOptions & { readonly onFailure: (error: unknown) => void },
): Promise<Settled[]> {
  try {
    return await settleBatch(deps, batch, options)
  } catch (error) {
    if (!isCausedByRow(error)) throw error
    if (batch.length === 1) {
      onFailure(error)
      return []
    }
  }
  const half = Math.ceil(batch.length / 2)
  const first = await settleApart(deps, batch.slice(0, half), { ...options, onFailure })
  return [...first, ...(await settleApart(deps, batch.slice(half), { ...options, onFailure }))]
}

async function settle(
  { db, clock }: SettleDeps,
  batch: readonly PendingSettlement[],
  onConflict: 'refuse' | 'keep',
  { ifHeld = 'wait' }: SettleOptions,
): Promise<Settled[]> {
  return transact(db, clock, async (tx) => {
    // Under the lock no begin can add a waiting run that this settlement would fail to see, and leave it waiting for ever.
    const locked = await lockAll(tx, batch, ifHeld)
    if (locked.length === 0) return []
    const now = clock.databaseNow()
    const facts = await readWaitFacts(tx, locked)
    const settlements = locked.map((settlement) => dropPointlessWait(settlement, facts.get(nameOf(settlement))))
    const settled = await settleRuns(tx, { settlements, autoPauseReason: AUTO_PAUSE_REASON, onConflict, now })
    const paused = settled.filter(({ isAutoPaused }) => isAutoPaused).map(({ scheduleId }) => scheduleId)
    // Before others are freed: a slot that is given up must not start.
    if (paused.length > 0) await skipWaitingSlots(tx, { scheduleIds: paused, now })
    const over = settled.filter(({ dueAt }) => dueAt === null).map(({ scheduleId }) => scheduleId)
    const freed = over.length === 0 ? [] : await freeWaitingRuns(tx, { scheduleIds: over, now })
    await notifyDue(tx, { lanes: [...freed, ...settled.flatMap(soonDue)] })
    return settled
  })
}

async function lockAll(
  tx: Tx,
  batch: readonly PendingSettlement[],
  ifHeld: 'wait' | 'leave',
): Promise<readonly Settlement[]> {
  const settlements = batch.map(({ settlement }) => settlement)
  const scheduleIds = settlements.map(({ scheduleId }) => scheduleId)
  if (ifHeld === 'wait') {
    await lockSchedules(tx, { scheduleIds })
    return settlements
  }
  const locked = await lockFreeSchedules(tx, { scheduleIds })
  return settlements.filter(({ scheduleId }) => locked.has(scheduleId))
}

async function readWaitFacts(tx: Tx, settlements: readonly Settlement[]): Promise<ReadonlyMap<string, WaitFacts>> {
  const scheduleIds = settlements.filter(({ waitsFor }) => waitsFor !== null).map(({ scheduleId }) => scheduleId)
  const facts = scheduleIds.length === 0 ? [] : await findWaitFacts(tx, { scheduleIds })
  return new Map(facts.map((run) => [nameOf(run), run]))
}

/**
 * A run that was to be cancelled, or whose schedule is deleted, does not wait to be tried again; nor does one that failed while
 * the next slot waits for its end: that slot has begun, so this one is superseded. One that only lost its worker, or was handed
 * back, keeps its place.
 */
function dropPointlessWait(settlement: Settlement, facts: WaitFacts | undefined): Settlement {
  if (settlement.waitsFor === null || facts === undefined) return settlement
  if (facts.isUnwanted) return { ...settlement, state: 'cancelled', waitsFor: null, dueInMs: null }
  if (!facts.isOvertaken || settlement.waitsFor !== 'retry') return settlement
  return { ...settlement, state: 'failed', reason: 'superseded', waitsFor: null, dueInMs: null }
}

/** The lane of a run that is tried again before workers would look. */
function soonDue({ lane, dueAt, settledAt }: Settled): string[] {
  return lane !== null && dueAt !== null && dueAt - settledAt < NOTIFY_WITHIN_MS ? [lane] : []
}

function nameOf({ scheduleId, scheduledFor }: { scheduleId: string; scheduledFor: number }): string {
  return `${scheduleId}:${scheduledFor}`
}
