import type { RetryPolicy } from '@carillon/api'

import type { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { PeriodicService } from '../kernel/service.ts'
import { NO_RETRY } from '../policy/retry.ts'
import type { Hooks } from './hooks.ts'
import { batchesOf, settleAll, settleApart } from './settle.ts'
import { emitSettled, settlementOf } from './settlement.ts'
import type { Settlement } from './store/settle.ts'
import { findDeadWorkers, findOrphanedRuns, removeDeadWorkers, type OrphanedRun } from './store/workers.ts'

export interface RescuerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly cadences: Pick<CadenceCache, 'policy'>
  readonly hooks: Hooks
  /** The kinds that this worker serves. Only a worker that serves a kind has its hooks, which a rescue calls. */
  readonly targetKinds: readonly string[]
}

export interface RescueCounts {
  /** Orphaned runs that were settled: they wait for another worker, or ended. */
  readonly rescued: number
  /** Rows of dead workers that were deleted. */
  readonly removed: number
}

/** How many orphaned runs one batch settles at most. */
const BATCH_MAX = 500
/** How many batches one rescue settles at most, so that it ends even if many workers died. The next rescue settles the rest. */
const BATCHES_MAX = 20
/** How often the rescuer also searches for runs of workers that have no row, because someone deleted it by hand. */
const FULL_EVERY_MS = 60_000

/**
 * Settles the orphaned runs of dead workers, those of the kinds that this worker serves. The lost attempt follows the same rules as any other: it is counted, the run is retried
 * or ends, and the dead worker's fence no longer holds (I12). A run that is retried is due at once. A worker that is slow but alive
 * can lose a run as well: see docs/guarantees.md.
 */
export class Rescuer extends PeriodicService<RescueCounts> {
  override readonly name = 'rescuer'
  readonly #deps: RescuerDeps
  #fullAtMs = -Infinity

  constructor(deps: RescuerDeps, options: { readonly periodMs: number }) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  /** While no lease has run out, a rescue only reads the workers' rows, and once a minute all held runs. */
  async runOnce(): Promise<RescueCounts> {
    const { db, clock } = this.#deps
    const nowMs = clock.monotonicMs()
    const isFull = nowMs - this.#fullAtMs >= FULL_EVERY_MS
    const dead = await findDeadWorkers(db, { now: clock.databaseNow() })
    if (dead.length === 0 && !isFull) return { rescued: 0, removed: 0 }
    const failures: unknown[] = []
    const rescued = await this.#rescueAll(isFull ? null : dead, failures)
    if (isFull) this.#fullAtMs = nowMs
    const removed = dead.length === 0 ? 0 : await removeDeadWorkers(db, { ids: dead, now: clock.databaseNow() })
    // Thrown at the end: one run that cannot be settled does not hold up the others.
    if (failures.length > 0) throw failures[0]
    return { rescued, removed }
  }

  async #rescueAll(workerIds: readonly string[] | null, failures: unknown[]): Promise<number> {
    const { db, clock, targetKinds } = this.#deps
    let rescued = 0
    for (let batches = 0; batches < BATCHES_MAX; batches += 1) {
      const orphans = await findOrphanedRuns(db, { workerIds, targetKinds, limit: BATCH_MAX, now: clock.databaseNow() })
      const settled = await this.#rescue(orphans, failures)
      rescued += settled
      // The rest is locked by another transaction, or another rescuer settled it. The next rescue looks again.
      if (settled === 0) break
    }
    return rescued
  }

  async #rescue(orphans: readonly OrphanedRun[], failures: unknown[]): Promise<number> {
    if (orphans.length === 0) return 0
    // A batch settles at most one run per schedule, as `settleRuns` requires. The next batch finds the others.
    const batch = [...new Map(orphans.map((run) => [run.scheduleId, run])).values()]
    const { events, hooks } = this.#deps
    const settlements = batch.map((run) => this.#settlementOf(run))
    const onFailure = (error: unknown): void => void failures.push(error)
    const settled = await settleAll(batchesOf(hooks, settlements), (part) =>
      settleApart(this.#deps, part, { ifHeld: 'leave', onFailure }),
    )
    for (const { runId, scheduleId, scheduledFor } of settled.runs) {
      events.emit('run.rescued', { runId, scheduleId, scheduledFor })
    }
    emitSettled(events, settled)
    return settled.runs.length
  }

  #settlementOf(run: OrphanedRun): Settlement {
    const ending = run.isCancelRequested ? ({ kind: 'cancelled' } as const) : ({ kind: 'lost' } as const)
    return settlementOf(run, ending, { retry: this.#retryOf(run) })
  }

  /** A run whose policy can no longer be read gets no further attempt. */
  #retryOf({ policy }: OrphanedRun): RetryPolicy {
    try {
      return this.#deps.cadences.policy(policy).retry
    } catch {
      return NO_RETRY
    }
  }
}
