import { randomUUID } from 'node:crypto'

import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { FailingServices } from '../kernel/failure-record.ts'
import type { Lease } from '../kernel/lease.ts'
import { PeriodicService } from '../kernel/service.ts'
import { findCancelRequests } from '../ledger/open-runs.ts'
import { endLease, extendLease, registerWorker, removeDeadWorkers } from './store/workers.ts'

export interface HeartbeatDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  /** The services of this worker that are failing; null: none. Stored with each beat, for the doctor. */
  readonly failing: () => FailingServices | null
  /** How long ago this worker had no room for another run; null: never. Stored with each beat. @default null */
  readonly fullMsAgo?: () => number | null
  /** Called with each run of this worker whose cancellation was requested. */
  readonly onCancel: (runId: string) => void
}

export interface HeartbeatOptions {
  /** For display. A worker's identity is a random id per lease, so two workers may have the same name. */
  readonly name: string
  readonly targetKinds: readonly string[]
  readonly heartbeatMs: number
}

/**
 * A lease lasts this many beats, so a worker counts as dead after three missed ones. Rescuers look twice per beat, so the worker's runs
 * go on within four beats.
 */
const BEATS_PER_LEASE = 3

/**
 * The heartbeat retries a failed beat this many times per beat, at a constant pace. It does not back off: Postgres may come back
 * shortly before the lease runs out, and a longer pause would lose the lease and every run under way.
 */
const TRIES_PER_BEAT = 5

/**
 * Keeps this worker's lease alive. A lease that ran out is never extended, because other workers may hold its runs by now: the
 * worker drops everything it holds and registers under a new id.
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
   * Ends the lease, so that rescuers need not wait until it runs out. If runs are left that could not be handed back, the worker's row
   * stays, so that a rescuer finds them.
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
    // The answer came after this process gave up the lease and its runs. The lease must run out, so that a rescuer finds the runs.
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
