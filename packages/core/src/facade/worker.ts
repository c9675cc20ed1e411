import type { Meter } from '@opentelemetry/api'
import type { RunnerOptions } from 'graphile-worker'

import type { AuthorizationPort } from '../authorization.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { Engine } from '../engine.ts'
import { GraphileEngine } from '../engine/graphile-engine.ts'
import { slotJobs } from '../engine/slot-jobs.ts'
import { CarillonError } from '../errors.ts'
import { Events } from '../events.ts'
import { Keeper } from '../keeper/keeper.ts'
import { Lease } from '../lease.ts'
import { countEvents, defaultMeter, gaugeRetention, gaugeWorker } from '../metrics.ts'
import { checkRetention } from '../policy/retention.ts'
import { checkedRetentionMs } from '../retention-days.ts'
import { Auditor } from '../services/auditor.ts'
import { CensusTaker } from '../services/census-taker.ts'
import { GrantWarner } from '../services/grant-warner.ts'
import { Heartbeat } from '../services/heartbeat.ts'
import { Rescuer } from '../services/rescuer.ts'
import { Upkeep } from '../services/upkeep.ts'
import { createDb, type Db } from '../store/database.ts'
import { Listener } from '../store/listener.ts'
import { migrationStatus } from '../store/migrate.ts'
import { createPool } from '../store/pool.ts'
import { readActingUser } from '../store/server.ts'
import type { Target } from '../target.ts'

export interface WorkerOptions {
  /** Of Postgres itself, not of a pooler that lends connections per transaction: it listens, and has its statements planned. */
  readonly databaseUrl: string
  /** What it serves; it claims and fetches nothing else. */
  readonly targets: readonly Target[]
  /** Shown to people. @default 'worker' */
  readonly name?: string
  /** How many runs it holds at most. @default 200 */
  readonly concurrency?: number
  /** How often it says that it lives. Its runs go on elsewhere within three beats of its death. @default 5000 */
  readonly heartbeatMs?: number
  /** For how long the ledger remembers; 7 or more. @default 90 */
  readonly retentionDays?: number
  /** Asked before each attempt whether the owner still has access. @default only the project's own members count */
  readonly authorization?: AuthorizationPort
  readonly clock?: Clock
  readonly events?: Events
  readonly meter?: Meter
}

/** How long a stop waits for what is under way before it hands it back. Under the 30 s that supervisors usually grant. */
const DRAIN_GRACE_MS = 20_000
/** After which a stop is over, come what may. */
const STOP_LIMIT_MS = 24_500
const HEARTBEAT_DEFAULT_MS = 5000
const CENSUS_EVERY_MS = 30_000
const WARN_EVERY_MS = 3_600_000
const KEEPER_CONNECTIONS = 5
const ENGINE_CONNECTIONS = 5
/** Across tenants, limited to what the pipeline needs (I9). */
const WORKER_ROLE = 'carillon_worker'

/**
 * A process that keeps the agenda: the keeper, and the services around it. As many as wanted share one Postgres; none of
 * them leads.
 */
export class Worker {
  readonly events: Events
  readonly #clock: Clock
  readonly #targets: ReadonlyMap<string, Target>
  readonly #pool: ReturnType<typeof createPool>
  readonly #enginePool: ReturnType<typeof createPool>
  readonly #db: Db
  readonly #keeper: Keeper
  readonly #heartbeat: Heartbeat
  readonly #rescuer: Rescuer
  readonly #auditor: Auditor
  readonly #upkeep: Upkeep
  readonly #census: CensusTaker
  readonly #warner: GrantWarner
  readonly #listener: Listener
  readonly #engine: Engine
  #stopped: Promise<void> | undefined

  constructor(options: WorkerOptions) {
    const { databaseUrl, name = 'worker', heartbeatMs = HEARTBEAT_DEFAULT_MS } = options
    const clock = options.clock ?? systemClock
    const events = options.events ?? new Events()
    this.events = events
    this.#clock = clock
    this.#targets = new Map(options.targets.map((target) => [target.kind, target]))
    const targetKinds = [...this.#targets.keys()]
    const onIdleError = (error: Error): void => events.emit('service.failed', { service: 'pool', error })
    const connection = {
      connectionString: databaseUrl,
      applicationName: `carillon ${name}`,
      role: WORKER_ROLE,
      onIdleError,
    }
    // Apart, so that no flood of jobs can keep the keeper from a connection.
    this.#pool = createPool({ ...connection, maxConnections: KEEPER_CONNECTIONS, isPrepared: true })
    this.#enginePool = createPool({ ...connection, maxConnections: ENGINE_CONNECTIONS })
    this.#db = createDb(this.#pool)
    const deps = { db: this.#db, clock, events, jobs: slotJobs, targets: this.#targets, lease: new Lease(clock) }
    const retentionMs = checkedRetentionMs(options.retentionDays)
    this.#keeper = new Keeper(
      { ...deps, authorization: options.authorization },
      { retentionMs, ...pick(options, 'concurrency') },
    )
    const enginePool: NonNullable<RunnerOptions['pgPool']> = this.#enginePool
    this.#engine = new GraphileEngine({ pool: enginePool, events, targetKinds })
    this.#heartbeat = new Heartbeat(
      {
        ...deps,
        engineWorkerIds: () => this.#engine.workerIds,
        onCancel: (runId) => this.#keeper.cancel(runId),
      },
      { name, targetKinds, heartbeatMs },
    )
    this.#rescuer = new Rescuer(deps, { periodMs: heartbeatMs / 2 })
    this.#auditor = new Auditor(deps, { retentionMs })
    this.#upkeep = new Upkeep(deps, { retentionMs })
    this.#census = new CensusTaker(deps, { periodMs: CENSUS_EVERY_MS })
    this.#warner = new GrantWarner(deps, { periodMs: WARN_EVERY_MS })
    this.#listener = new Listener({
      ...deps,
      connectionString: databaseUrl,
      onAgenda: () => this.#keeper.wake(),
      onCancel: (runId) => this.#keeper.cancel(runId),
    })
    const meter = options.meter ?? defaultMeter()
    countEvents(events, meter)
    gaugeRetention(this.#targets, meter)
    gaugeWorker(this, meter)
  }

  get census(): CensusTaker['latest'] {
    return this.#census.latest
  }

  /** How many runs it holds at this moment. */
  get inFlight(): number {
    return this.#keeper.inFlight
  }

  get connectionsInUse(): number {
    return [this.#pool, this.#enginePool].reduce((sum, pool) => sum + pool.totalCount - pool.idleCount, 0)
  }

  /** @throws CarillonError if the database is not of this version, or a target forgets sooner than its retries end */
  async start(): Promise<void> {
    this.#checkRetention()
    await this.#checkSchema()
    await this.#checkRole()
    await this.#upkeep.runOnce()
    // Before the first job can come: it is taken in the name of the lease.
    await this.#heartbeat.runOnce()
    await this.#engine.start({
      attempt: (slot) => this.#keeper.attempt(slot),
      upkeep: {
        partitions: { crontab: '17 * * * *', run: async () => void (await this.#upkeep.runOnce()) },
        audit: { crontab: '41 3 * * *', run: async () => void (await this.#auditor.runOnce()) },
      },
    })
    // Again, to say under which names jobs are locked here: should this process die now, somebody must free them.
    await this.#heartbeat.runOnce()
    const services = [this.#heartbeat, this.#listener, this.#rescuer, this.#census, this.#warner, this.#keeper]
    for (const service of services) service.start()
  }

  /** Lets what is under way end, hands the rest back, and leaves. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopInTime()
    return this.#stopped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** A Postgres that says nothing any more must not keep this process: what it holds is found by a rescuer. */
  async #stopInTime(): Promise<void> {
    const late = Promise.withResolvers<void>()
    const stopTimer = this.#clock.after(STOP_LIMIT_MS, () => {
      this.#pool.sever()
      this.#enginePool.sever()
      late.resolve()
    })
    await Promise.race([this.#stop(), late.promise])
    stopTimer()
  }

  async #stop(): Promise<void> {
    // First what brings work and the work itself, then what says that this worker lives: its lease must outlast its runs.
    await Promise.all([
      this.#listener.stop(),
      this.#rescuer.stop(),
      this.#census.stop(),
      this.#warner.stop(),
      this.#keeper.drain(DRAIN_GRACE_MS),
      this.#tryTo('engine', () => this.#engine.stop()),
    ])
    await this.#tryTo('heartbeat', () => this.#heartbeat.leave())
    for (const target of this.#targets.values()) await target.close?.()
    await this.#db.destroy()
    await this.#enginePool.end()
  }

  /** A database that is gone must not keep the rest from being closed. */
  async #tryTo(service: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.events.emit('service.failed', { service, error })
    }
  }

  #checkRetention(): void {
    for (const { kind, retry, idempotencyRetentionSeconds } of this.#targets.values()) {
      if (idempotencyRetentionSeconds === undefined) continue
      const problem = checkRetention({ retry, idempotencyRetentionSeconds })
      if (problem !== null) {
        throw new CarillonError('retention_too_short', `target ${kind}: ${problem.message}`, { problems: [problem] })
      }
    }
  }

  /** A pooler may swallow what a connection asks for; then it would act as whoever logged in. */
  async #checkRole(): Promise<void> {
    const { user } = await readActingUser(this.#db)
    if (user === WORKER_ROLE) return
    const message = `expected to act as ${WORKER_ROLE}, got ${user}: connect to Postgres itself, not through a pooler`
    throw new CarillonError('role_refused', message)
  }

  async #checkSchema(): Promise<void> {
    const { pending } = await migrationStatus(this.#pool)
    if (pending.length === 0) return
    throw new CarillonError('schema_outdated', `the database lacks ${pending.join(', ')}: migrate it first`)
  }
}

function pick<Value extends object, Key extends keyof Value>(value: Value, key: Key): Partial<Pick<Value, Key>> {
  return value[key] === undefined ? {} : ({ [key]: value[key] } as Pick<Value, Key>)
}
