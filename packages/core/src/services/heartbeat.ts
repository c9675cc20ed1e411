import { randomUUID } from 'node:crypto'

import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Lease } from '../lease.ts'
import { PeriodicService } from '../service.ts'
import { type Db } from '../store/database.ts'
import { findCancelRequests } from '../store/waiting-runs.ts'
import { endLease, extendLease, registerWorker, removeDeadWorkers, type Failing } from '../store/workers.ts'

export interface HeartbeatDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  /** What fails in this worker at the moment; told with each beat, for whoever examines it. */
  readonly failing: () => Failing | null
  /** How long ago this worker had no room for another run; null: it always had some. Told with each beat. @default null */
  readonly fullMsAgo?: () => number | null
  /** Told of runs of this worker that somebody asked to cancel. */
  readonly onCancel: (runId: string) => void
}

export interface HeartbeatOptions {
  /** Shown to people; identity is a random id per lease, so equal names do no harm. */
  readonly name: string
  readonly targetKinds: readonly string[]
  readonly heartbeatMs: number
}

/** A worker is given up after missing three beats in a row: with the rescuer's pace, its runs go on within four. */
const BEATS_PER_LEASE = 3

/**
 * The heartbeat retries a failed beat this many times per beat, at a constant pace. It does not back off: Postgres may come back
 * shortly before the lease runs out, and a longer pause would lose the lease and every run under way.
 */
const TRIES_PER_BEAT = 5

/**
 * Keeps this worker's lease alive. One that ran out is not taken up again, for its runs may be somebody else's by now:
 * everything held is let go of, and the worker comes back under a new id.
 */
export class Heartbeat extends PeriodicService<{ readonly extended: number }> {
  override readonly name = 'heartbeat'
  readonly #deps: HeartbeatDeps
  readonly #options: HeartbeatOptions

  constructor(deps: HeartbeatDeps, options: HeartbeatOptions) {
    const pauseMs = options.heartbeatMs / TRIES_PER_BEAT
    super(deps, options.heartbeatMs, { firstMs: pauseMs, maxMs: pauseMs })
    this.#deps = deps
    this.#options = options
    deps.lease.onLost((workerId) => deps.events.emit('lease.lost', { workerId }))
  }

  async runOnce(): Promise<{ readonly extended: number }> {
    const { lease, db } = this.#deps
    const held = lease.workerId
    if (held !== undefined && (await this.#extend(held))) {
      for (const runId of await findCancelRequests(db, { workerId: held })) this.#deps.onCancel(runId)
      return { extended: 1 }
    }
    lease.lose()
    await this.#register()
    return { extended: 0 }
  }

  /**
   * Says goodbye: no rescuer needs to wait for the lease to run out. If runs are left that could not be handed back, the row stays and
   * tells rescuers that they are lost.
   */
  async leave(): Promise<void> {
    const { db, clock, lease } = this.#deps
    await this.stop()
    const id = lease.workerId
    if (id === undefined) return
    lease.release()
    const now = clock.databaseNow()
    await endLease(db, { id, now })
    await removeDeadWorkers(db, { ids: [id], now })
  }

  async #extend(id: string): Promise<boolean> {
    const { db, clock, lease, failing, fullMsAgo } = this.#deps
    const askedAtMs = clock.monotonicMs()
    const leaseMs = this.#leaseMs
    const now = clock.databaseNow()
    const beat = { id, failing: failing(), fullMsAgo: fullMsAgo?.() ?? null, leaseMs, now }
    if (!(await extendLease(db, beat))) return false
    // The answer may have come after the lease was let go of. What was held under it is written by nobody any more, so it
    // must run out for a rescuer to find it.
    if (lease.workerId !== id) return false
    lease.grant(id, askedAtMs, leaseMs)
    return true
  }

  async #register(): Promise<void> {
    const { db, clock, lease } = this.#deps
    const { name, targetKinds } = this.#options
    const id = randomUUID()
    const askedAtMs = clock.monotonicMs()
    const leaseMs = this.#leaseMs
    const now = clock.databaseNow()
    await registerWorker(db, { id, name, targetKinds, leaseMs, now })
    lease.grant(id, askedAtMs, leaseMs)
  }

  get #leaseMs(): number {
    return this.#options.heartbeatMs * BEATS_PER_LEASE
  }
}
