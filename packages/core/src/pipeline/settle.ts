import { SYSTEM_SUBJECT, type Refusal, type RetryPolicy } from '@carillon/api'

import { type Db, type Tx } from '../db/database.ts'
import { lockFreeSchedules, lockSchedules } from '../db/locks.ts'
import { notifyDue, NOTIFY_WITHIN_MS } from '../db/notify.ts'
import { isCausedByRow, SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { Json } from '../kernel/json.ts'
import type { RunFence } from '../ledger/held-run.ts'
import { findWaitFacts, endTurnWait, skipWaitingSlots, type WaitFacts } from '../ledger/open-runs.ts'
import { decideRetry } from '../policy/retry.ts'
import { AUTO_PAUSE_REASON } from '../policy/schedule-policy.ts'
import type { AttemptError, Outcome } from '../ports/target.ts'
import { settleRuns, type SettledRun, type Settlement } from './store/settle.ts'

/** How an attempt ended, as the worker saw it. */
export type Ending =
  | Outcome
  /** The run may no longer act. Its target was not called. */
  | { readonly kind: 'refused'; readonly reason: Refusal }
  /** The run's worker died. Another worker reports it. */
  | { readonly kind: 'lost' }
  /** The worker stops, or did not know that it held the run, and returns it untried: no attempt is charged. */
  | { readonly kind: 'handed_back' }

export interface SettlementOptions {
  readonly retry: RetryPolicy
  /** False if the overlap policy rules out that another run of the schedule waits for this one to end. @default true */
  readonly mayFree?: boolean
}

const LOST: AttemptError = { code: 'worker_lost', message: 'the worker died before the attempt was settled' }

/** Any worker with room may take the run. */
const AT_ONCE = { waitsFor: 'worker', dueInMs: 0 } as const

/** Turns the ending of an attempt into what is written. First attempts, retries and rescues all come through here. */
export function settlementOf(run: RunFence, ending: Ending, { retry, mayFree = true }: SettlementOptions): Settlement {
  const base = {
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    workerId: run.workerId,
    token: run.token,
    targetKind: run.targetKind,
    mayFree,
    reason: null,
    waitsFor: null,
    dueInMs: null,
    error: null,
    result: null,
  }
  switch (ending.kind) {
    case 'succeeded':
      return { ...base, state: 'succeeded', outcome: 'succeeded', result: toText(ending.result) }
    case 'cancelled':
      return { ...base, state: 'cancelled', outcome: 'cancelled' }
    case 'malformed':
      return { ...base, state: 'failed', outcome: 'malformed', error: errorText(ending.error) }
    case 'refused':
      // A run that was tried before did run, so it cannot be skipped.
      return { ...base, state: run.attempt === 1 ? 'skipped' : 'failed', outcome: null, reason: ending.reason }
    case 'handed_back':
      return { ...base, state: run.attempt === 1 ? 'pending' : 'retrying', outcome: null, ...AT_ONCE }
    case 'lost':
      // Without a backoff: the run has already waited for its worker's lease to run out.
      return run.attempt < retry.maxAttempts
        ? { ...base, state: 'retrying', outcome: 'lost', ...AT_ONCE, error: errorText(LOST) }
        : { ...base, state: 'failed', outcome: 'lost', error: errorText(LOST) }
    case 'failed': {
      const { attempt, runId } = run
      const failed = { ...base, outcome: 'failed', error: errorText(ending.error) } as const
      const next = decideRetry({ policy: retry, attempt, outcome: ending, jitterSeed: runId })
      return next.kind === 'retry'
        ? { ...failed, state: 'retrying', waitsFor: 'retry', dueInMs: next.delayMs }
        : { ...failed, state: 'failed' }
    }
  }
}

/** True if settling needs no lock on the schedule: no retry, no failure to count, no run that waits for this one to end. */
export function needsNoLock({ state, mayFree }: Settlement): boolean {
  return state === 'succeeded' && !mayFree
}

export interface SettleDeps {
  readonly db: Db
  readonly clock: Clock
}

interface SettleOptions {
  /** What to do with a settlement whose schedule another transaction has locked: wait for it, or leave it out. @default 'wait' */
  readonly ifHeld?: 'wait' | 'leave'
}

/**
 * I4: writes the result of attempts in one transaction: the attempt, the run, when it is tried again, the counters, auto-pause,
 * and the start of a run that waited for its turn. A batch holds at most one settlement per schedule.
 * @returns the runs that were settled; a settlement whose fence no longer holds is missing (I12)
 */
export async function settleBatch(
  deps: SettleDeps,
  batch: readonly Settlement[],
  options: SettleOptions = {},
): Promise<SettledRun[]> {
  try {
    return await settle(deps, batch, 'refuse', options)
  } catch (error) {
    // An attempt with this key exists: written by hand, or restored from a backup. Keep it, so that the batch can be settled.
    if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
    return settle(deps, batch, 'keep', options)
  }
}

/**
 * Settles a batch. If Postgres refuses one of its rows, the batch is halved until that row stands alone; the row is reported to
 * `onFailure` and left out, so that the others do not wait for it.
 */
export async function settleApart(
  deps: SettleDeps,
  batch: readonly Settlement[],
  { onFailure, ...options }: SettleOptions & { readonly onFailure: (error: unknown) => void },
): Promise<SettledRun[]> {
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

/** Emits what was settled and what followed from it. A run's own worker and a rescuer emit the same events. */
export function emitSettled(events: Events, run: SettledRun): void {
  const { tenantId, projectId, scheduleId, targetKind, scheduledFor, runId, attempt, state, reason, dueAt } = run
  const slot = { tenantId, projectId, scheduleId, targetKind, scheduledFor }
  if (state === 'skipped') {
    if (reason !== null) events.emit('slot.skipped', { ...slot, reason })
  } else {
    const durationMs = run.settledAt - run.startedAt
    events.emit('attempt.settled', { ...slot, runId, attempt, state, retryAt: dueAt, durationMs })
  }
  if (!run.isAutoPaused) return
  const paused = { tenantId, projectId, scheduleId, actor: SYSTEM_SUBJECT, reason: AUTO_PAUSE_REASON }
  events.emit('schedule.paused', paused)
}

async function settle(
  { db, clock }: SettleDeps,
  batch: readonly Settlement[],
  onConflict: 'refuse' | 'keep',
  { ifHeld = 'wait' }: SettleOptions,
): Promise<SettledRun[]> {
  return transact(db, clock, async (tx) => {
    // Without this lock, a BEGIN could add a waiting run that this settlement does not see, and that would then never start.
    const locked = await lockAll(tx, batch, ifHeld)
    if (locked.length === 0) return []
    const now = clock.databaseNow()
    const facts = await readWaitFacts(tx, locked)
    const settlements = locked.map((settlement) => dropPointlessRetry(settlement, facts.get(nameOf(settlement))))
    const settled = await settleRuns(tx, { settlements, autoPauseReason: AUTO_PAUSE_REASON, onConflict, now })
    const paused = settled.filter(({ isAutoPaused }) => isAutoPaused).map(({ scheduleId }) => scheduleId)
    // Before waiting runs are freed: a run of a schedule that just paused must not start.
    if (paused.length > 0) await skipWaitingSlots(tx, { scheduleIds: paused, now })
    const over = settled.filter(({ dueAt }) => dueAt === null).map(({ scheduleId }) => scheduleId)
    const freed = over.length === 0 ? [] : await endTurnWait(tx, { scheduleIds: over, now })
    await notifyDue(tx, { lanes: [...freed, ...settled.flatMap(soonDue)] })
    return settled
  })
}

async function lockAll(tx: Tx, batch: readonly Settlement[], ifHeld: 'wait' | 'leave'): Promise<readonly Settlement[]> {
  const scheduleIds = batch.map(({ scheduleId }) => scheduleId)
  if (ifHeld === 'wait') {
    await lockSchedules(tx, { scheduleIds })
    return batch
  }
  const locked = await lockFreeSchedules(tx, { scheduleIds })
  return batch.filter(({ scheduleId }) => locked.has(scheduleId))
}

async function readWaitFacts(tx: Tx, settlements: readonly Settlement[]): Promise<ReadonlyMap<string, WaitFacts>> {
  const scheduleIds = settlements.filter(({ waitsFor }) => waitsFor !== null).map(({ scheduleId }) => scheduleId)
  const facts = scheduleIds.length === 0 ? [] : await findWaitFacts(tx, { scheduleIds })
  return new Map(facts.map((run) => [nameOf(run), run]))
}

/**
 * Ends a run instead of letting it wait for a retry that must not happen: its cancellation was requested, its schedule was
 * deleted, or the next slot has begun and waits for this run to end. In the last case only a run that failed ends, as superseded: a
 * run that lost its worker or was handed back still waits for a worker.
 */
function dropPointlessRetry(settlement: Settlement, facts: WaitFacts | undefined): Settlement {
  if (settlement.waitsFor === null || facts === undefined) return settlement
  if (facts.isUnwanted) return { ...settlement, state: 'cancelled', waitsFor: null, dueInMs: null }
  if (!facts.isAwaited || settlement.waitsFor !== 'retry') return settlement
  return { ...settlement, state: 'failed', reason: 'superseded', waitsFor: null, dueInMs: null }
}

/** The lane to notify if a run is tried again so soon that workers would not look in time. */
function soonDue({ lane, dueAt, settledAt }: SettledRun): string[] {
  return lane !== null && dueAt !== null && dueAt - settledAt < NOTIFY_WITHIN_MS ? [lane] : []
}

function nameOf({ scheduleId, scheduledFor }: { scheduleId: string; scheduledFor: number }): string {
  return `${scheduleId}:${scheduledFor}`
}

function toText(value: Json): string | null {
  return value === null ? null : JSON.stringify(value)
}

function errorText(error: AttemptError): string {
  return JSON.stringify(error)
}
