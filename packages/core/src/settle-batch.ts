import type { Clock } from './clock.ts'
import type { Jobs } from './engine.ts'
import { AUTO_PAUSE_REASON } from './policy/auto-pause.ts'
import { transact, type Db, type Tx } from './store/database.ts'
import { lockSchedules } from './store/schedule-lock.ts'
import { settleRuns, type Settled, type Settlement } from './store/settle.ts'
import { SQLSTATE, sqlStateOf } from './store/sqlstate.ts'
import { findPendingRuns, findRetryFacts, skipWaitingSlots, type RetryFacts } from './store/waiting-runs.ts'

/** A settlement, and whether a run of the same schedule may be waiting for this one's end. */
export interface PendingSettlement {
  readonly settlement: Settlement
  readonly mayFree: boolean
}

/**
 * Whether nothing but itself follows from it: no retry, no failure to count, nobody to wake. Then no schedule needs to be
 * locked, and one that somebody else holds is in nobody's way.
 */
export function isPlain({ settlement, mayFree }: PendingSettlement): boolean {
  return settlement.state === 'succeeded' && !mayFree
}

export interface SettleDeps {
  readonly db: Db
  readonly clock: Clock
  readonly jobs: Jobs
}

/**
 * I4: writes what attempts came to, with everything that follows from it, in one transaction: one statement where all went
 * well, and with the jobs of retries and of runs whose turn has come where not. At most one settlement per schedule.
 */
export async function settleBatch(deps: SettleDeps, batch: readonly PendingSettlement[]): Promise<Settled[]> {
  try {
    return await settle(deps, batch, 'refuse')
  } catch (error) {
    // Somebody wrote an attempt by hand, or restored one. It stays, and nobody else's settlement waits behind it for ever.
    if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
    return settle(deps, batch, 'keep')
  }
}

async function settle(
  { db, clock, jobs }: SettleDeps,
  batch: readonly PendingSettlement[],
  onConflict: 'refuse' | 'keep',
): Promise<Settled[]> {
  const now = clock.databaseNow()
  const settlements = batch.map(({ settlement }) => settlement)
  const statement = { autoPauseReason: AUTO_PAUSE_REASON, onConflict, now }
  if (batch.every(isPlain)) return settleRuns(db, { ...statement, settlements })
  return transact(db, clock, async (tx) => {
    // Under the lock no begin can add a waiting run that this settlement would fail to see, and leave it waiting for ever.
    await lockSchedules(tx, { scheduleIds: settlements.map(({ scheduleId }) => scheduleId) })
    const facts = await readRetryFacts(tx, settlements)
    const heeded = settlements.map((settlement) => withoutVainRetry(settlement, facts.get(nameOf(settlement))))
    const settled = await settleRuns(tx, { ...statement, settlements: heeded })
    const retries = settled.flatMap((run) => {
      const slot = facts.get(nameOf(run))
      return run.retryAt === null || slot === undefined ? [] : [{ ...slot, runAt: run.retryAt }]
    })
    const paused = settled.filter(({ isAutoPaused }) => isAutoPaused).map(({ scheduleId }) => scheduleId)
    if (paused.length > 0) await jobs.withdraw(tx, await skipWaitingSlots(tx, { scheduleIds: paused, now }))
    const over = settled.filter(({ state }) => state !== 'retrying').map(({ scheduleId }) => scheduleId)
    const freed = over.length === 0 ? [] : await findPendingRuns(tx, { scheduleIds: over })
    await jobs.enqueue(tx, [...retries, ...freed.map((slot) => ({ ...slot, runAt: null }))])
    return settled
  })
}

async function readRetryFacts(tx: Tx, settlements: readonly Settlement[]): Promise<ReadonlyMap<string, RetryFacts>> {
  const scheduleIds = settlements.filter(({ state }) => state === 'retrying').map(({ scheduleId }) => scheduleId)
  const facts = scheduleIds.length === 0 ? [] : await findRetryFacts(tx, { scheduleIds })
  return new Map(facts.map((run) => [nameOf(run), run]))
}

/**
 * A run that was to be cancelled, or whose schedule is deleted, is not tried again; nor is one that failed while the next
 * slot waits for its end: that slot has begun, so this one is superseded. One that only lost its worker keeps its place.
 */
function withoutVainRetry(settlement: Settlement, facts: RetryFacts | undefined): Settlement {
  if (settlement.state !== 'retrying' || facts === undefined) return settlement
  if (facts.isUnwanted) return { ...settlement, state: 'cancelled', retryInMs: null }
  if (!facts.isOvertaken || settlement.outcome !== 'failed') return settlement
  return { ...settlement, state: 'failed', reason: 'superseded', retryInMs: null }
}

function nameOf({ scheduleId, scheduledFor }: { scheduleId: string; scheduledFor: number }): string {
  return `${scheduleId}:${scheduledFor}`
}
