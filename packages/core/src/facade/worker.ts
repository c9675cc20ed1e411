import type { Meter } from '@opentelemetry/api'

import type { AuthorizationPort } from '../authorization.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError } from '../errors.ts'
import { Events } from '../events.ts'
import { FailureRecord, FORGET_AFTER_MS, type Part } from '../failure-record.ts'
import { Keeper } from '../keeper/keeper.ts'
import { SlotBook } from '../keeper/slot-book.ts'
import { Lease } from '../lease.ts'
import { countEvents, defaultMeter, gaugeRetention, gaugeWorker } from '../metrics.ts'
import { checkRetention } from '../policy/retention.ts'
import { checkedRetentionMs } from '../retention-days.ts'
import type { Service } from '../service.ts'
import { Auditor } from '../services/auditor.ts'
import { BacklogWriter } from '../services/backlog-writer.ts'
import { CensusTaker } from '../services/census-taker.ts'
import { GrantWarner } from '../services/grant-warner.ts'
import { Heartbeat } from '../services/heartbeat.ts'
import { Rescuer } from '../services/rescuer.ts'
import { StrayCheck } from '../services/stray-check.ts'
import { Upkeep } from '../services/upkeep.ts'
import { createDb, type Db } from '../store/database.ts'
import { Listener } from '../store/listener.ts'
import { migrationStatus } from '../store/migrate.ts'
import { createPool } from '../store/pool.ts'
import { readActingUser } from '../store/server.ts'
import type { Failing } from '../store/workers.ts'
import type { Target } from '../target.ts'

export interface WorkerOptions {
  /** Of Postgres itself, not of a pooler that lends connections per transaction: it listens, and has its statements planned. */
  readonly databaseUrl: string
  /** What it serves; it claims nothing else. */
  readonly targets: readonly Target[]
  /** Shown to people. @default 'worker' */
  readonly name?: string
  /** How many runs it holds at most. @default 200 */
  readonly concurrency?: number
  /** How often it says that it lives. Its runs go on elsewhere within four beats of its death. @default 2000 */
  readonly heartbeatMs?: number
  /** For how long the ledger remembers; 7 or more. @default 90 */
  readonly retentionDays?: number
  /** Asked before each attempt whether the owner still has access. @default only the project's own members count */
  readonly authorization?: AuthorizationPort
  /** What else can fail in this process, such as parts of its API: the worker reports it with its own parts. @default nothing */
  readonly otherParts?: readonly Part[]
  readonly clock?: Clock
  readonly events?: Events
  readonly meter?: Meter
}

/** How long a stop waits for what is under way before it hands it back. Under the 30 s that supervisors usually grant. */
const DRAIN_GRACE_MS = 20_000
/** After which a stop is over, come what may. */
const STOP_LIMIT_MS = 24_500
const HEARTBEAT_DEFAULT_MS = 2000
const CENSUS_EVERY_MS = 30_000
const WARN_EVERY_MS = 3_600_000
/** Begin 2, take 1, settle 3, permissions 1, rescue 1. */
const PIPELINE_CONNECTIONS = 8
/** Half of what the driver grants: what waits behind a silent connection must go on within 30 seconds. */
const PIPELINE_ANSWER_MS = 15_000
/** For what may take its time: upkeep, the audit, counts, warnings. */
const SERVICE_CONNECTIONS = 2
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
  readonly #servicePool: ReturnType<typeof createPool>
  readonly #heartbeatPool: ReturnType<typeof createPool>
  readonly #db: Db
  readonly #keeper: Keeper
  readonly #heartbeat: Heartbeat
  readonly #rescuer: Rescuer
  readonly #auditor: Auditor
  readonly #backlogs: BacklogWriter
  readonly #upkeep: Upkeep
  readonly #census: CensusTaker
  readonly #warner: GrantWarner
  readonly #listener: Listener
  readonly #strayCheck: StrayCheck
  readonly #services: readonly Service<unknown>[]
  /** The services and what they use: everything in this worker that can fail. */
  readonly #parts: readonly Part[]
  #stopped: Promise<void> | undefined

  constructor(options: WorkerOptions) {
    const { databaseUrl, name = 'worker', heartbeatMs = HEARTBEAT_DEFAULT_MS } = options
    const clock = options.clock ?? systemClock
    const events = options.events ?? new Events()
    this.events = events
    this.#clock = clock
    this.#targets = new Map(options.targets.map((target) => [target.kind, target]))
    const targetKinds = [...this.#targets.keys()]
    const poolFailures = new FailureRecord({ clock, events }, { name: 'pool' }, FORGET_AFTER_MS)
    const onIdleError = (error: Error): void => void poolFailures.failed(error)
    const connection = {
      connectionString: databaseUrl,
      applicationName: `carillon ${name}`,
      role: WORKER_ROLE,
      onIdleError,
    }
    this.#pool = createPool({
      ...connection,
      maxConnections: PIPELINE_CONNECTIONS,
      isPrepared: true,
      answerWithinMs: PIPELINE_ANSWER_MS,
    })
    this.#servicePool = createPool({ ...connection, maxConnections: SERVICE_CONNECTIONS, isPrepared: true })
    // Of its own, and soon given up: neither a lock that somebody holds nor a silent connection costs the lease.
    this.#heartbeatPool = createPool({
      ...connection,
      maxConnections: 1,
      isPrepared: true,
      answerWithinMs: heartbeatMs,
    })
    this.#db = createDb(this.#pool)
    const deps = { db: this.#db, clock, events, targets: this.#targets, lease: new Lease(clock) }
    const serviceDeps = { ...deps, db: createDb(this.#servicePool) }
    const retentionMs = checkedRetentionMs(options.retentionDays)
    this.#keeper = new Keeper(
      { ...deps, authorization: options.authorization },
      { retentionMs, ...pick(options, 'concurrency') },
    )
    this.#heartbeat = new Heartbeat(
      {
        ...deps,
        db: createDb(this.#heartbeatPool),
        failing: () => this.failing,
        fullMsAgo: () => this.#keeper.fullMsAgo,
        onCancel: (runId) => this.#keeper.cancel(runId),
      },
      { name, targetKinds, heartbeatMs },
    )
    this.#rescuer = new Rescuer(deps, { periodMs: heartbeatMs / 2 })
    this.#auditor = new Auditor(serviceDeps, { retentionMs })
    this.#backlogs = new BacklogWriter({ ...serviceDeps, source: new SlotBook() }, { retentionMs })
    this.#upkeep = new Upkeep(serviceDeps, { retentionMs })
    this.#census = new CensusTaker(serviceDeps, { periodMs: CENSUS_EVERY_MS })
    this.#warner = new GrantWarner(serviceDeps, { periodMs: WARN_EVERY_MS })
    this.#listener = new Listener({
      ...deps,
      connectionString: databaseUrl,
      onAgenda: (lane) => this.#keeper.wake(lane),
      onCancel: (runId) => this.#keeper.cancel(runId),
    })
    this.#strayCheck = new StrayCheck({ ...deps, lookForStrays: () => this.#keeper.lookForStrays() })
    // In the order in which they start.
    this.#services = [
      this.#heartbeat,
      this.#listener,
      this.#rescuer,
      this.#keeper,
      this.#strayCheck,
      this.#census,
      this.#warner,
      this.#upkeep,
      this.#backlogs,
      this.#auditor,
    ]
    this.#parts = [...this.#services, ...this.#keeper.parts, poolFailures, ...(options.otherParts ?? [])]
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
    return this.#pools.reduce((sum, pool) => sum + pool.totalCount - pool.idleCount, 0)
  }

  /** How long ago the slots came due that the audit has compared last, whichever worker audits; null if that is not known. */
  get auditLagSeconds(): number | null {
    return this.#auditor.lagMs === null ? null : this.#auditor.lagMs / 1000
  }

  /** The services, and parts of them, that fail at the moment, by name; null if none does. */
  get failing(): Failing | null {
    const failures = this.#parts.flatMap(({ name, failure }) =>
      failure === undefined ? [] : [[name, failure] as const],
    )
    return failures.length === 0 ? null : Object.fromEntries(failures)
  }

  get #pools(): readonly ReturnType<typeof createPool>[] {
    return [this.#pool, this.#servicePool, this.#heartbeatPool]
  }

  /** @throws CarillonError if the database is not of this version, or a target forgets sooner than its retries end */
  async start(): Promise<void> {
    this.#checkRetention()
    await this.#checkSchema()
    await this.#checkRole()
    await this.#upkeep.ensureMonths()
    await this.#heartbeat.runOnce()
    for (const service of this.#services) service.start()
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
      for (const pool of this.#pools) pool.sever()
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
      this.#strayCheck.stop(),
      this.#census.stop(),
      this.#warner.stop(),
      this.#upkeep.stop(),
      this.#auditor.stop(),
      this.#backlogs.stop(),
      this.#keeper.drain(DRAIN_GRACE_MS),
    ])
    await this.#tryTo('heartbeat', () => this.#heartbeat.leave())
    for (const target of this.#targets.values()) await target.close?.()
    await Promise.all(this.#pools.map((pool) => pool.end()))
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
