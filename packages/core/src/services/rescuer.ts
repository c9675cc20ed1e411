import type { Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import type { Events } from '../events.ts'
import { NO_RETRY, type RetryPolicy } from '../policy/retry.ts'
import { readPolicy } from '../policy/schedule-policy.ts'
import { PeriodicService } from '../service.ts'
import { settleBatch, type PendingSettlement } from '../settle-batch.ts'
import { tellSettled } from '../settled-events.ts'
import { settlementOf } from '../settlement.ts'
import { transact, type Db } from '../store/database.ts'
import { unlockJobs } from '../store/jobs.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { findStrandedRuns } from '../store/waiting-runs.ts'
import { findDeadWorkers, findOrphanedRuns, removeWorkers, type OrphanedRun } from '../store/workers.ts'

export interface RescuerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly jobs: Jobs
}

export interface RescueCounts {
  /** Runs whose worker died, that go on or end. */
  readonly rescued: number
  /** Waiting runs that nothing would have woken. */
  readonly woken: number
  /** Workers that were given up. */
  readonly buried: number
}

const BATCH_MAX = 500
/** A job that is not there so long after its time is not just being handled, or late. */
const OVERDUE_MS = 10_000

/**
 * Goes on with the runs of dead workers: settles their lost attempt by the same rules as any other, so that it is counted,
 * retried or final, and the fence of the dead one falls with it (I12). A slow but living worker may lose a run, too: see
 * docs/guarantees.md.
 */
export class Rescuer extends PeriodicService<RescueCounts> {
  override readonly name = 'rescuer'
  readonly #deps: RescuerDeps

  constructor(deps: RescuerDeps, options: { readonly periodMs: number }) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  async runOnce(): Promise<RescueCounts> {
    const { db, clock } = this.#deps
    const dead = await findDeadWorkers(db, { now: clock.databaseNow() })
    let rescued = 0
    for (let latest = -1; latest !== 0; rescued += latest) {
      latest = await this.#rescue(await findOrphanedRuns(db, { limit: BATCH_MAX, now: clock.databaseNow() }))
    }
    if (dead.length > 0) {
      await unlockJobs(db, { engineWorkerIds: dead.flatMap(({ engineWorkerIds }) => engineWorkerIds) })
      await removeWorkers(db, { ids: dead.map(({ id }) => id) })
    }
    return { rescued, woken: await this.#wakeStranded(), buried: dead.length }
  }

  async #rescue(orphans: readonly OrphanedRun[]): Promise<number> {
    if (orphans.length === 0) return 0
    // One per schedule at a time, as everywhere; the rest is found again the next time round.
    const batch = [...new Map(orphans.map((run) => [run.scheduleId, run])).values()]
    const settled = await settleBatch(this.#deps, batch.map(pendingOf))
    const { events } = this.#deps
    for (const run of settled) {
      const { runId, scheduleId, scheduledFor } = run
      events.emit('run.rescued', { runId, scheduleId, scheduledFor })
      tellSettled(events, run)
    }
    return settled.length
  }

  /** Runs whose turn has come but whose job is missing: enqueued again, from the ledger. */
  async #wakeStranded(): Promise<number> {
    const { db, clock, jobs } = this.#deps
    const now = clock.databaseNow()
    const stranded = await findStrandedRuns(db, { limit: BATCH_MAX, overdueMs: OVERDUE_MS, now })
    if (stranded.length === 0) return 0
    await transact(db, clock, async (tx) => {
      await lockSchedules(tx, { scheduleIds: stranded.map(({ scheduleId }) => scheduleId) })
      await jobs.enqueue(tx, stranded)
    })
    return stranded.length
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
