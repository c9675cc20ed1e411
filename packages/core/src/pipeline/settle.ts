import { type Db, type Tx } from '../db/database.ts'
import { lockFreeSchedules, lockSchedules } from '../db/locks.ts'
import { notifyDue, NOTIFY_WITHIN_MS } from '../db/notify.ts'
import { isCausedByRow, SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { limitLockWait, transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { StoredCompletion } from '../ledger/completions.ts'
import { endTurnWait, findSettleFacts, lockRuns, skipWaitingSlots, type SettleFacts } from '../ledger/open-runs.ts'
import { AUTO_PAUSE_REASON } from '../policy/schedule-policy.ts'
import type { Outcome } from '../ports/target.ts'
import { HOOK_LOCK_LIMIT_MS, HookError, type Hooks, type ScheduleEffects } from './hooks.ts'
import { applyEffects, type ScheduleEffectMade } from './schedule-effects.ts'
import { settlementOf, type SettledBatch } from './settlement.ts'
import { settleRuns, type SettledRun, type Settlement } from './store/settle.ts'

export interface SettleDeps {
  readonly db: Db
  readonly clock: Clock
  readonly hooks: Hooks
}

interface SettleOptions {
  /** What to do with a settlement whose schedule another transaction has locked: wait for it, or leave it out. @default 'wait' */
  readonly ifHeld?: 'wait' | 'leave'
}

const NOTHING_SETTLED: SettledBatch = { runs: [], effects: [] }

/** How often a batch with hooks is repeated because a completion came between the read and the write of a run. */
const TRIES_MAX = 10

/** A run was completed while its batch was settled, and its hook was called with another ending. */
class CompletedMeanwhileError extends Error {
  override readonly name = 'CompletedMeanwhileError'
}

/**
 * I4: writes the result of attempts in one transaction: the attempt, the run, when it is tried again, the counters, auto-pause, the start
 * of a run that waited for its turn, and what the hook of the kind writes. A batch holds at most one settlement per schedule, and only
 * settlements of one kind if that kind has hooks.
 */
export async function settleBatch(
  deps: SettleDeps,
  batch: readonly Settlement[],
  options: SettleOptions = {},
): Promise<SettledBatch> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await settle(deps, batch, 'refuse', options)
    } catch (error) {
      // An attempt with this key exists: written by hand, or restored from a backup. Keep it, so that the batch can be settled.
      if (sqlStateOf(error) === SQLSTATE.uniqueViolation) return settle(deps, batch, 'keep', options)
      if (!(error instanceof CompletedMeanwhileError) || tries >= TRIES_MAX) throw error
    }
  }
}

/**
 * Settles a batch. If Postgres refuses one of its rows, or a hook fails, the batch is halved until that run stands alone; it is reported
 * to `onFailure` and left out, so that the others do not wait for it.
 */
export async function settleApart(
  deps: SettleDeps,
  batch: readonly Settlement[],
  { onFailure, ...options }: SettleOptions & { readonly onFailure: (error: unknown) => void },
): Promise<SettledBatch> {
  try {
    return await settleBatch(deps, batch, options)
  } catch (error) {
    if (!isOfOneRun(error)) throw error
    if (batch.length === 1) {
      onFailure(error)
      return NOTHING_SETTLED
    }
  }
  const half = Math.ceil(batch.length / 2)
  return settleAll([batch.slice(0, half), batch.slice(half)], (part) =>
    settleApart(deps, part, { ...options, onFailure }),
  )
}

/** True if a batch may succeed without one of its runs: Postgres refused a row, or a hook failed. */
export function isOfOneRun(error: unknown): boolean {
  return error instanceof HookError || isCausedByRow(error)
}

/** Splits settlements into batches that `settleBatch` takes: those of each kind with hooks apart from all others. */
export function batchesOf(hooks: Hooks, settlements: readonly Settlement[]): readonly (readonly Settlement[])[] {
  return [...Map.groupBy(settlements, ({ run }) => (hooks.kinds.has(run.targetKind) ? run.targetKind : '')).values()]
}

/** Settles batches one after the other, and returns what all of them wrote. */
export async function settleAll(
  batches: readonly (readonly Settlement[])[],
  settleOne: (batch: readonly Settlement[]) => Promise<SettledBatch>,
): Promise<SettledBatch> {
  const all = { runs: [] as SettledRun[], effects: [] as ScheduleEffectMade[] }
  for (const batch of batches) {
    const { runs, effects } = await settleOne(batch)
    all.runs.push(...runs)
    all.effects.push(...effects)
  }
  return all
}

async function settle(
  deps: SettleDeps,
  batch: readonly Settlement[],
  onConflict: 'refuse' | 'keep',
  { ifHeld = 'wait' }: SettleOptions,
): Promise<SettledBatch> {
  const { db, clock, hooks } = deps
  const kind = batch[0]?.run.targetKind ?? ''
  const hasHooks = hooks.kinds.has(kind)
  const settled = await transact(db, clock, async (tx) => {
    if (hasHooks) await limitLockWait(tx, HOOK_LOCK_LIMIT_MS)
    // Without this lock, a BEGIN could add a waiting run that this settlement does not see, and that would then never start.
    const locked = await lockAll(tx, batch, ifHeld)
    if (locked.length === 0) return NOTHING_SETTLED
    const now = clock.databaseNow()
    const write = (settlements: readonly Settlement[]): Promise<SettledRun[]> =>
      settleRuns(tx, { settlements, autoPauseReason: AUTO_PAUSE_REASON, onConflict, now })
    const decided = await decideAll(tx, locked, { isAlways: hasHooks, now })
    const { final, effects } = hasHooks
      ? await callSettled(tx, hooks, kind, decided)
      : { final: decided, effects: NO_EFFECTS }
    if (final.length === 0) return NOTHING_SETTLED
    const runs = await write(final)
    if (runs.length < final.length) {
      if (hasHooks) throw new CompletedMeanwhileError('a run was completed while its batch was settled')
      runs.push(...(await write(await completedMeanwhile(tx, final, runs, now))))
    }
    await followUp(tx, runs, now)
    const asked = new Map([...effectsOf(final), ...effects])
    return { runs, effects: asked.size === 0 ? [] : await applyEffects(tx, asked, now) }
  })
  hooks.noteSettled(batch.map(({ run }) => run))
  return settled
}

const NO_EFFECTS: ScheduleEffects = new Map()

/** What `admit` asked to do to the schedules of runs that it refused. */
function effectsOf(settlements: readonly Settlement[]): ScheduleEffects {
  return new Map(settlements.flatMap(({ run, effect }) => (effect === null ? [] : [[run.scheduleId, effect] as const])))
}

async function lockAll(tx: Tx, batch: readonly Settlement[], ifHeld: 'wait' | 'leave'): Promise<readonly Settlement[]> {
  const scheduleIds = batch.map(({ run }) => run.scheduleId)
  if (ifHeld === 'wait') {
    await lockSchedules(tx, { scheduleIds })
    return batch
  }
  const locked = await lockFreeSchedules(tx, { scheduleIds })
  return batch.filter(({ run }) => locked.has(run.scheduleId))
}

/**
 * Decides each settlement by the run as it is under the lock of its schedule.
 * @param p.isAlways true: the facts are needed of every run. Otherwise only a run that is to wait needs them.
 */
async function decideAll(
  tx: Tx,
  settlements: readonly Settlement[],
  { isAlways, now }: { isAlways: boolean; now: Date | null },
): Promise<readonly Settlement[]> {
  const needing = settlements.filter(({ waitsFor, held }) => isAlways || waitsFor !== null || held === 'detached')
  if (needing.length === 0) return settlements
  const facts = await factsOf(tx, needing, now)
  const isNeeding = new Set(needing)
  return settlements.flatMap((settlement) => {
    if (!isNeeding.has(settlement)) return [settlement]
    const known = facts.get(nameOf(settlement.run))
    return known === undefined || !isFenceHeld(settlement, known) ? [] : (decide(settlement, known) ?? [])
  })
}

async function factsOf(
  tx: Tx,
  settlements: readonly Settlement[],
  now: Date | null,
): Promise<ReadonlyMap<string, SettleFacts>> {
  const facts = await findSettleFacts(tx, { scheduleIds: settlements.map(({ run }) => run.scheduleId), now })
  return new Map(facts.map((run) => [nameOf(run), run]))
}

function isFenceHeld({ run, held }: Settlement, facts: SettleFacts): boolean {
  return facts.state === held && facts.workerId === run.workerId && facts.token === run.token
}

/**
 * What is written, by what is known of the run. A completion that was taken decides, even if the worker, a rescuer or a deadline ends
 * the attempt: its caller was answered that it is taken. Only `accepted` leaves it to the settlement of the detached run, which follows at
 * once.
 *
 * A run that would wait ends instead if it must not be tried again: its cancellation was requested, its schedule was deleted, or the next
 * slot has begun and waits for this run to end. In the last case only a run that failed ends, as superseded: a run that lost its
 * worker, was handed back or deferred keeps its place.
 * @returns undefined if nothing is to be written: a detached run whose deadline was moved meanwhile
 */
function decide(settlement: Settlement, facts: SettleFacts): Settlement | undefined {
  const { completion, isUnwanted, isAwaited, isPastDeadline } = facts
  if (settlement.state === 'detached') return isUnwanted ? { ...settlement, dueInMs: 0 } : settlement
  if (completion === null && settlement.held === 'detached') {
    if (isUnwanted) return cancelledOf(settlement)
    if (!isPastDeadline) return undefined
  }
  const decided = completion === null ? settlement : settledBy(completion, settlement)
  if (decided.waitsFor === null) return decided
  if (isUnwanted) return { ...decided, state: 'cancelled', waitsFor: null, dueInMs: null, dueAt: null }
  if (!isAwaited || decided.waitsFor !== 'retry') return decided
  return { ...decided, state: 'failed', reason: 'superseded', waitsFor: null, dueInMs: null }
}

function settledBy(completion: string, { run, held, retry, mayFree }: Settlement): Settlement {
  const { ending, by } = endingOfCompletion(completion)
  return { ...settlementOf(run, ending, { retry, mayFree, held }), completion, completedBy: by }
}

/** How a run ends by its completion, as the row of the run holds it. */
function endingOfCompletion(stored: string): { readonly ending: Outcome; readonly by: string } {
  const completion = JSON.parse(stored) as StoredCompletion
  const { by } = completion
  switch (completion.outcome) {
    case 'succeeded':
      return { by, ending: { kind: 'succeeded', result: completion.result ?? null } }
    case 'failed': {
      const { error, retryable = true } = completion
      return { by, ending: { kind: 'failed', error, retryable } }
    }
    case 'cancelled':
      return { by, ending: { kind: 'cancelled' } }
  }
}

function cancelledOf({ run, held, retry, mayFree }: Settlement): Settlement {
  return settlementOf(run, { kind: 'cancelled' }, { retry, mayFree, held })
}

/** The settlements whose runs were completed between the read and the write, by their completions. */
async function completedMeanwhile(
  tx: Tx,
  settlements: readonly Settlement[],
  written: readonly SettledRun[],
  now: Date | null,
): Promise<readonly Settlement[]> {
  const done = new Set(written.map(nameOf))
  const left = settlements.filter(({ run }) => !done.has(nameOf(run)))
  const facts = await factsOf(tx, left, now)
  return left.flatMap((settlement) => {
    const known = facts.get(nameOf(settlement.run))
    if (known === undefined || known.completion === null || !isFenceHeld(settlement, known)) return []
    return decide(settlement, known) ?? []
  })
}

/**
 * Calls the hook `settled` before the runs are written and locked: code of a module that holds rows of its own may complete a run, and the
 * opposite order would deadlock with it. A run whose hook has failed for long is settled as failed.
 * @throws HookError if the hook failed; if its run is alone in the batch, the failure is remembered
 */
async function callSettled(
  tx: Tx,
  hooks: Hooks,
  kind: string,
  decided: readonly Settlement[],
): Promise<{ readonly final: readonly Settlement[]; readonly effects: ScheduleEffects }> {
  const [only] = decided
  if (only !== undefined && decided.length === 1 && hooks.isGivenUp(only.run)) {
    const error = { code: 'settle_failed', message: `the hook settled of ${kind} failed for a minute` }
    const failed = settlementOf(only.run, { kind: 'malformed', error }, only)
    const final = { ...failed, completion: only.completion, completedBy: only.completedBy }
    const effects = await hooks.settledAtLast(tx, kind, final)
    return { final: [final], effects }
  }
  try {
    const effects = await hooks.settled(tx, kind, decided)
    await lockRuns(tx, {
      scheduleIds: decided.map(({ run }) => run.scheduleId),
      runIds: decided.map(({ run }) => run.runId),
    })
    return { final: decided, effects }
  } catch (error) {
    if (error instanceof HookError && only !== undefined && decided.length === 1) hooks.noteFailed(only.run)
    throw error
  }
}

/** What follows from the runs that were written: waiting runs of paused schedules end, others have their turn, workers are notified. */
async function followUp(tx: Tx, runs: readonly SettledRun[], now: Date | null): Promise<void> {
  const paused = runs.filter(({ isAutoPaused }) => isAutoPaused).map(({ scheduleId }) => scheduleId)
  // Before waiting runs are freed: a run of a schedule that just paused must not start.
  if (paused.length > 0) await skipWaitingSlots(tx, { scheduleIds: paused, now })
  const over = runs.filter(({ dueAt }) => dueAt === null).map(({ scheduleId }) => scheduleId)
  const freed = over.length === 0 ? [] : await endTurnWait(tx, { scheduleIds: over, now })
  await notifyDue(tx, { lanes: [...freed, ...runs.flatMap(soonDue)] })
}

/** The lane to notify if the pipeline acts on a run again so soon that workers would not look in time. */
function soonDue({ lane, dueAt, settledAt }: SettledRun): string[] {
  return lane !== null && dueAt !== null && dueAt - settledAt < NOTIFY_WITHIN_MS ? [lane] : []
}

function nameOf({ scheduleId, scheduledFor }: { scheduleId: string; scheduledFor: number }): string {
  return `${scheduleId}:${scheduledFor}`
}
