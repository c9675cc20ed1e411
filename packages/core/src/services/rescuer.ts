import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { NO_RETRY, type RetryPolicy } from '../policy/retry.ts'
import { readPolicy } from '../policy/schedule-policy.ts'
import { PeriodicService } from '../service.ts'
import { settleApart, type PendingSettlement } from '../settle-batch.ts'
import { tellSettled } from '../settled-events.ts'
import { settlementOf } from '../settlement.ts'
import type { Db } from '../store/database.ts'
import { findDeadWorkers, findOrphanedRuns, removeDeadWorkers, type OrphanedRun } from '../store/workers.ts'

export interface RescuerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

export interface RescueCounts {
  /** Runs whose worker died, that wait to be taken or end. */
  readonly rescued: number
  /** Workers that were taken off the list. */
  readonly removed: number
}

const BATCH_MAX = 500
/** How many batches one rescue settles at most: a storm of deaths must not keep this service from its next look. */
const BATCHES_MAX = 20
/** Between looks for runs of workers that are not even on the list: somebody removed their row by hand. */
const FULL_EVERY_MS = 60_000

/**
 * Puts back the runs of dead workers: settles their lost attempt by the same rules as any other, so that it is counted, retried
 * or final, and the fence of the dead one falls with it (I12). A run that goes on is due at once, and whoever has room takes it.
 * A slow but living worker may lose a run, too: see docs/guarantees.md.
 */
export class Rescuer extends PeriodicService<RescueCounts> {
  override readonly name = 'rescuer'
  readonly #deps: RescuerDeps
  #fullAtMs = -Infinity

  constructor(deps: RescuerDeps, options: { readonly periodMs: number }) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  /** Where no lease has run out it reads the list of workers, and nothing else but once a minute. */
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
    // Told only now: one run that cannot be settled does not keep back the others.
    if (failures.length > 0) throw failures[0]
    return { rescued, removed }
  }

  async #rescueAll(workerIds: readonly string[] | null, failures: unknown[]): Promise<number> {
    const { db, clock } = this.#deps
    let rescued = 0
    for (let batches = 0; batches < BATCHES_MAX; batches += 1) {
      const orphans = await findOrphanedRuns(db, { workerIds, limit: BATCH_MAX, now: clock.databaseNow() })
      const settled = await this.#rescue(orphans, failures)
      rescued += settled
      // What is left is held by somebody at the moment, or was settled by another rescuer: it is looked for again the next time.
      if (settled === 0) break
    }
    return rescued
  }

  async #rescue(orphans: readonly OrphanedRun[], failures: unknown[]): Promise<number> {
    if (orphans.length === 0) return 0
    // One per schedule at a time, as everywhere; the rest is found again the next time round.
    const batch = [...new Map(orphans.map((run) => [run.scheduleId, run])).values()]
    const { events } = this.#deps
    const settled = await settleApart(this.#deps, batch.map(pendingOf), {
      ifHeld: 'leave',
      onFailure: (error) => failures.push(error),
    })
    for (const run of settled) {
      const { runId, scheduleId, scheduledFor } = run
      events.emit('run.rescued', { runId, scheduleId, scheduledFor })
      tellSettled(events, run)
    }
    return settled.length
  }
}

function pendingOf(run: OrphanedRun): PendingSettlement {
  const ending = run.isCancelRequested ? ({ kind: 'cancelled' } as const) : ({ kind: 'lost' } as const)
  return { settlement: settlementOf(run, retryOf(run), ending), mayFree: true }
}

/** A run whose policy can no longer be read gets no further attempt. */
function retryOf({ policy }: OrphanedRun): RetryPolicy {
  try {
    return readPolicy(JSON.parse(policy)).retry
  } catch {
    return NO_RETRY
  }
}
