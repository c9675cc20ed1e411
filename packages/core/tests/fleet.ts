import type pg from 'pg'

import type { AuditCounts } from '../src/audit/auditor.ts'
import { CadenceCache } from '../src/cadences/cadence-cache.ts'
import { createDb, type Db } from '../src/db/database.ts'
import { createPool } from '../src/db/pool.ts'
import { systemClock } from '../src/kernel/clock.ts'
import { Events, type EventMap } from '../src/kernel/events.ts'
import { Lease } from '../src/kernel/lease.ts'
import { Heartbeat } from '../src/pipeline/heartbeat.ts'
import { Hooks } from '../src/pipeline/hooks.ts'
import type { Pipeline } from '../src/pipeline/pipeline.ts'
import { Rescuer } from '../src/pipeline/rescuer.ts'
import type { Target } from '../src/ports/target.ts'
import { Scheduler } from '../src/scheduler.ts'
import type { SchedulerOptions } from '../src/schedules/options.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { ManualClock } from './manual-clock.ts'
import { pipelineOf } from './pipeline-parts.ts'
import { DAY, HOUR } from './pipeline.ts'
import { ScriptedTarget } from './scripted-target.ts'
import { refuseUndeclaredNulls as onAnswer } from './statements/declared-nulls.ts'
import { TestAuditor } from './test-auditor.ts'

/** A clock whose instant only the test moves, but whose sleeps and timers take real time, as in real workers. */
class SteppedClock extends ManualClock {
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal)
  }

  override after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms, callback)
  }
}

/** A worker with connections of its own. */
export class FleetWorker {
  readonly events = new Events()
  readonly failures: EventMap['service.failed'][] = []
  readonly loop: Pipeline
  readonly rescuer: Rescuer
  readonly scheduler: Scheduler
  /** Has the permissions of the role carillon_worker only. */
  readonly #pool: pg.Pool
  readonly #db: Db
  readonly #schedulerPool: pg.Pool
  readonly #heartbeat: Heartbeat
  #settled = 0

  constructor(url: string, clock: ManualClock, targets: ReadonlyMap<string, Target>, options: SchedulerOptions) {
    this.#pool = createPool({ connectionString: url, role: 'carillon_worker', maxConnections: 8, isPrepared: true })
    this.#db = createDb(this.#pool, { onAnswer })
    this.#schedulerPool = createPool({ connectionString: url, maxConnections: 8 })
    const lease = new Lease(clock)
    const hooks = new Hooks({ clock, events: this.events, targets })
    const deps = { db: this.#db, clock, targets, lease, events: this.events, hooks }
    this.loop = pipelineOf(deps)
    this.rescuer = new Rescuer(
      { ...deps, cadences: new CadenceCache(), targetKinds: [...targets.keys()] },
      { periodMs: HOUR },
    )
    const schedulerDeps = { db: createDb(this.#schedulerPool, { onAnswer }), clock, targets, events: this.events }
    this.scheduler = new Scheduler(schedulerDeps, options)
    const heartbeatDeps = { failing: () => null, onCancel: (runId: string) => this.loop.cancel(runId) }
    // The lease outlasts the test, because no worker of a fleet dies.
    this.#heartbeat = new Heartbeat(
      { ...deps, ...heartbeatDeps },
      { name: 'fleet', targetKinds: ['test'], heartbeatMs: 100 * DAY },
    )
    this.events.on('service.failed', (failure) => this.failures.push(failure))
    this.events.on('attempt.settled', () => (this.#settled += 1))
  }

  get settled(): number {
    return this.#settled
  }

  /** Beats once: takes or extends the lease, and cancels the runs that a caller asked to cancel. */
  async beat(): Promise<void> {
    await this.#heartbeat.runOnce()
  }

  async stop(): Promise<void> {
    await this.loop.drain(0)
    await Promise.all([this.#pool.end(), this.#schedulerPool.end()])
  }
}

/** Several workers on one database, under one clock. */
export class Fleet implements AsyncDisposable {
  readonly database: TestDatabase
  readonly clock: ManualClock
  readonly target = new ScriptedTarget()
  readonly workers: readonly FleetWorker[]
  #isStopped = false

  private constructor(database: TestDatabase, now: string, size: number, options: SchedulerOptions) {
    this.database = database
    this.clock = new SteppedClock(now)
    const targets = new Map<string, Target>([['test', this.target]])
    this.workers = Array.from({ length: size }, () => new FleetWorker(database.url, this.clock, targets, options))
  }

  static async at(now: string, size = 2, options: SchedulerOptions = {}): Promise<Fleet> {
    const fleet = new Fleet(await createDatabase(), now, size, options)
    await Promise.all(fleet.workers.map((worker) => worker.beat()))
    return fleet
  }

  get settled(): number {
    return this.workers.reduce((sum, { settled }) => sum + settled, 0)
  }

  /** Resolves once the workers have settled this many attempts together. */
  async whenSettled(count: number): Promise<void> {
    if (this.settled >= count) return
    await new Promise<void>((resolve) => {
      for (const { events } of this.workers) events.on('attempt.settled', () => this.settled >= count && resolve())
    })
  }

  /** Advances the clock and wakes every pipeline loop. */
  step(ms: number): void {
    this.clock.advance(ms)
    for (const { loop } of this.workers) loop.wake()
  }

  /** Audits every schedule and every run. */
  async audit(): Promise<AuditCounts> {
    const { clock } = this
    const db = createDb(createPool({ connectionString: this.database.url, role: 'carillon_worker' }), { onAnswer })
    const counts = await new TestAuditor({ db, clock, events: new Events() }, { windowMs: 2 * HOUR }).audit()
    await db.close()
    return counts
  }

  /** Stops all workers. Only then are the statistics that Postgres keeps of their sessions complete. */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    await Promise.all(this.workers.map((worker) => worker.stop()))
  }

  async deadlocks(): Promise<number> {
    const { rows } = await this.database.pool.query<{ deadlocks: number }>(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    )
    return rows[0]?.deadlocks ?? Number.NaN
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.database[Symbol.asyncDispose]()
  }
}
