import type { Meter } from '@opentelemetry/api'

import { GrantExpiryWarnings } from './access/grant-expiry-warnings.ts'
import { Auditor } from './audit/auditor.ts'
import { moduleChecks } from './audit/module-checks.ts'
import { CadenceCache } from './cadences/cadence-cache.ts'
import { createDb, type Db } from './db/database.ts'
import { migrationStatus, missingMigrationsText } from './db/migrate.ts'
import { listReasons } from './db/module-history.ts'
import { Listener } from './db/notify.ts'
import { createPool } from './db/pool.ts'
import { checkedSchema, workerRole } from './db/schema-name.ts'
import { readActingUser } from './db/server.ts'
import { systemClock, type Clock } from './kernel/clock.ts'
import { CarillonError } from './kernel/errors.ts'
import { Events } from './kernel/events.ts'
import { FailureRecord, FORGET_AFTER_MS, type FailingServices, type MonitoredPart } from './kernel/failure-record.ts'
import { Lease } from './kernel/lease.ts'
import type { Service } from './kernel/service.ts'
import { BacklogWriter } from './ledger/backlogs.ts'
import { readCallbackKey } from './ledger/completions.ts'
import { GaugeCollector } from './maintenance/gauge-collector.ts'
import { countEvents, defaultMeter, gaugeWorker } from './maintenance/metrics.ts'
import { Upkeep } from './maintenance/upkeep.ts'
import { servicesOf } from './modules/services.ts'
import { CallbackUrls } from './pipeline/callback-urls.ts'
import { Heartbeat } from './pipeline/heartbeat.ts'
import { Hooks } from './pipeline/hooks.ts'
import { InDoubtCheck } from './pipeline/in-doubt-commits.ts'
import { Pipeline } from './pipeline/pipeline.ts'
import { Rescuer } from './pipeline/rescuer.ts'
import { TranscriptWriters } from './pipeline/transcript-writers.ts'
import { checkedRetentionMs } from './policy/retention-days.ts'
import { checkKeyRetention } from './policy/retry.ts'
import type { AuthorizationPort } from './ports/authorization.ts'
import type { LoadedModule } from './ports/module.ts'
import type { Target } from './ports/target.ts'

export interface WorkerOptions {
  /** A direct connection, not a pooler that lends connections per transaction: the worker listens and prepares statements. */
  readonly databaseUrl: string
  /** The schema that holds Carillon's tables. @default 'carillon' */
  readonly schema?: string
  /** The targets that the worker can call. It claims no schedules whose target is of another kind. @default none but those of modules */
  readonly targets?: readonly Target[]
  /** What `loadModules` loaded: the worker serves their targets, runs their services and makes their checks. @default none */
  readonly modules?: readonly LoadedModule[]
  /** For display, for example in `carillon doctor` and in pg_stat_activity. @default 'worker' */
  readonly name?: string
  /** How many runs the worker holds at a time, at most. At the limit it claims nothing until a run ends. @default `CONCURRENCY_DEFAULT` */
  readonly concurrency?: number
  /**
   * Time between two heartbeats. If the worker dies, other workers take over its runs within four heartbeats.
   * @default `HEARTBEAT_DEFAULT_MS`
   */
  readonly heartbeatMs?: number
  /** For how many days the ledger keeps its lines: see `RETENTION_DAYS`. */
  readonly retentionDays?: number
  /** How many bytes of JSON the transcript of one run may have: see `TRANSCRIPT_BYTES`. */
  readonly transcriptBytes?: number
  /** The URL at which called services reach the API, to complete runs. @default none: a target that needs a callback fails */
  readonly publicUrl?: string | (() => string)
  /** Asked before each attempt whether the schedule's owner still has access. @default only the project's member list is checked */
  readonly authorization?: AuthorizationPort
  /** Other parts of this process that can fail, such as its API. The worker reports them with its own. @default none */
  readonly otherParts?: readonly MonitoredPart[]
  readonly clock?: Clock
  readonly events?: Events
  readonly meter?: Meter
}

/** How long a stop waits for runs in flight before it hands them back. Less than the 30 s that process managers usually allow. */
const DRAIN_GRACE_MS = 20_000
/** After this time a stop cuts all connections to Postgres and returns, whatever is left to write. */
const STOP_LIMIT_MS = 24_500
const HEARTBEAT_DEFAULT_MS = 2000
const GAUGES_EVERY_MS = 30_000
const WARN_EVERY_MS = 3_600_000
/**
 * The connections of the pipeline: 2 for begin, 1 for take, 3 for settle, 1 for permissions, 1 for the rescuer, 1 for detached runs,
 * 1 for transcripts.
 */
const PIPELINE_CONNECTIONS = 10
/** For each kind with hooks: one to begin or take, one to settle. So a hook that is slow keeps no connection from other kinds. */
const HOOK_CONNECTIONS = 2
/**
 * How long the pipeline waits for an answer of Postgres before it gives up the connection. Half of the driver's limit: work that waits
 * behind a silent connection must go on within 30 seconds.
 */
const PIPELINE_ANSWER_MS = 15_000
/** The connections of the services that are not urgent: upkeep, audit, backlogs, gauges, warnings. */
const SERVICE_CONNECTIONS = 2

/**
 * A worker process: the pipeline loop and the services around it. Any number of workers share one Postgres, and none of them is a
 * leader.
 */
export class Worker {
  readonly events: Events
  readonly #clock: Clock
  readonly #targets: ReadonlyMap<string, Target>
  readonly #modules: readonly LoadedModule[]
  /** The reasons for which hooks may refuse runs. Read from the database at the start: other modules may have added some. */
  readonly #reasons = new Set<string>()
  /** The services of modules, and those that make their checks. */
  readonly #moduleServices: readonly Service<unknown>[]
  readonly #pool: ReturnType<typeof createPool>
  readonly #servicePool: ReturnType<typeof createPool>
  readonly #heartbeatPool: ReturnType<typeof createPool>
  readonly #db: Db
  readonly #pipeline: Pipeline
  readonly #callbacks: CallbackUrls
  readonly #transcripts: TranscriptWriters
  readonly #heartbeat: Heartbeat
  readonly #rescuer: Rescuer
  readonly #auditor: Auditor
  readonly #backlogs: BacklogWriter
  readonly #upkeep: Upkeep
  readonly #gauges: GaugeCollector
  readonly #expiryWarnings: GrantExpiryWarnings
  readonly #listener: Listener
  readonly #inDoubtCheck: InDoubtCheck
  readonly #services: readonly Service<unknown>[]
  /** The services and their parts: everything in this worker that can fail. */
  readonly #parts: readonly MonitoredPart[]
  #stopped: Promise<void> | undefined

  constructor(options: WorkerOptions) {
    const { databaseUrl, name = 'worker', heartbeatMs = HEARTBEAT_DEFAULT_MS } = options
    const clock = options.clock ?? systemClock
    const events = options.events ?? new Events()
    this.events = events
    this.#clock = clock
    const schema = checkedSchema(options.schema)
    const { modules = [], targets = [] } = options
    this.#modules = modules
    const ofModules = modules.flatMap(({ parts }) => parts.targets ?? [])
    this.#targets = new Map([...targets, ...ofModules].map((target) => [target.kind, target]))
    const targetKinds = [...this.#targets.keys()]
    const hooks = new Hooks({ clock, events, targets: this.#targets, reasons: this.#reasons })
    const poolFailures = new FailureRecord({ clock, events }, { name: 'pool' }, FORGET_AFTER_MS)
    const onIdleError = (error: Error): void => void poolFailures.failed(error)
    const connection = {
      connectionString: databaseUrl,
      applicationName: `carillon ${name}`,
      schema,
      role: workerRole(schema),
      onIdleError,
    }
    this.#pool = createPool({
      ...connection,
      maxConnections:
        PIPELINE_CONNECTIONS + HOOK_CONNECTIONS * targetKinds.filter((kind) => hooks.kinds.has(kind)).length,
      isPrepared: true,
      answerWithinMs: PIPELINE_ANSWER_MS,
    })
    this.#servicePool = createPool({ ...connection, maxConnections: SERVICE_CONNECTIONS, isPrepared: true })
    // The heartbeat has its own pool with a short time limit: neither a lock nor a silent connection must make the worker lose its lease.
    this.#heartbeatPool = createPool({
      ...connection,
      maxConnections: 1,
      isPrepared: true,
      answerWithinMs: heartbeatMs,
    })
    this.#db = createDb(this.#pool)
    const deps = { db: this.#db, clock, events, targets: this.#targets, lease: new Lease(clock), hooks }
    const serviceDeps = { ...deps, db: createDb(this.#servicePool) }
    const retentionMs = checkedRetentionMs(options.retentionDays)
    /** The loop has one of its own: what the services read must not displace what it reads all the time. */
    const cadences = new CadenceCache()
    const callbacks = new CallbackUrls(options.publicUrl ?? null)
    this.#callbacks = callbacks
    const { transcriptBytes: runBytes } = options
    this.#transcripts = new TranscriptWriters(deps, { ...(runBytes !== undefined && { runBytes }) })
    this.#pipeline = new Pipeline(
      {
        ...deps,
        authorization: options.authorization,
        transcripts: this.#transcripts,
        callback: (run) => callbacks.of(run),
      },
      { retentionMs, ...pick(options, 'concurrency') },
    )
    this.#heartbeat = new Heartbeat(
      {
        ...deps,
        db: createDb(this.#heartbeatPool),
        failing: () => this.failing,
        fullMsAgo: () => this.#pipeline.fullMsAgo,
        onCancel: (runId) => this.#pipeline.cancel(runId),
      },
      { name, targetKinds, heartbeatMs },
    )
    this.#rescuer = new Rescuer({ ...deps, cadences, targetKinds }, { periodMs: heartbeatMs / 2 })
    this.#auditor = new Auditor(serviceDeps, { retentionMs })
    this.#backlogs = new BacklogWriter({ ...serviceDeps, cadences }, { retentionMs })
    this.#upkeep = new Upkeep(serviceDeps, { retentionMs })
    this.#gauges = new GaugeCollector(serviceDeps, { periodMs: GAUGES_EVERY_MS })
    this.#expiryWarnings = new GrantExpiryWarnings(serviceDeps, { periodMs: WARN_EVERY_MS })
    this.#listener = new Listener({
      ...deps,
      connectionString: databaseUrl,
      schema,
      onAgenda: (lane) => this.#pipeline.wake(lane),
      onCancel: (runId) => this.#pipeline.cancel(runId),
    })
    this.#inDoubtCheck = new InDoubtCheck({ ...deps, check: () => this.#pipeline.checkInDoubt() })
    this.#moduleServices = [...servicesOf(modules, serviceDeps), ...moduleChecks(modules, serviceDeps)]
    // In the order in which they start.
    this.#services = [
      this.#heartbeat,
      this.#listener,
      this.#rescuer,
      ...this.#pipeline.services,
      this.#inDoubtCheck,
      this.#gauges,
      this.#expiryWarnings,
      this.#upkeep,
      this.#backlogs,
      this.#auditor,
      ...this.#moduleServices,
    ]
    this.#parts = [
      ...this.#services,
      ...this.#pipeline.parts,
      this.#transcripts,
      poolFailures,
      ...(options.otherParts ?? []),
    ]
    const meter = options.meter ?? defaultMeter()
    countEvents(events, meter)
    gaugeWorker(this, meter)
  }

  /** The names of the services in the order in which they start. `failing`, doctor and metrics report them by these names. */
  get serviceNames(): readonly string[] {
    return this.#services.map(({ name }) => name)
  }

  get gauges(): GaugeCollector['latest'] {
    return this.#gauges.latest
  }

  /** The number of runs that this worker holds at this moment. */
  get inFlight(): number {
    return this.#pipeline.inFlight
  }

  get connectionsInUse(): number {
    return this.#pools.reduce((sum, pool) => sum + pool.totalCount - pool.idleCount, 0)
  }

  /** How far the audit is behind: the age of the instant up to which it has compared all slots, on any worker; null if not known. */
  get auditLagSeconds(): number | null {
    return this.#auditor.lagMs === null ? null : this.#auditor.lagMs / 1000
  }

  /** The services and parts that fail at the moment, by name; null if none does. */
  get failing(): FailingServices | null {
    const failures = this.#parts.flatMap(({ name, failure }) =>
      failure === undefined ? [] : [[name, failure] as const],
    )
    return failures.length === 0 ? null : Object.fromEntries(failures)
  }

  get #pools(): readonly ReturnType<typeof createPool>[] {
    return [this.#pool, this.#servicePool, this.#heartbeatPool]
  }

  /**
   * @throws CarillonError if a target forgets its idempotency keys before its retries end, if the schema is outdated, or if the
   * connection does not act as the worker's role
   */
  async start(): Promise<void> {
    this.#checkRetention()
    await this.#checkSchema()
    await this.#checkRole()
    for (const reason of await listReasons(this.#pool, this.#pool.schema)) this.#reasons.add(reason)
    this.#callbacks.useKey(await readCallbackKey(this.#db))
    await this.#upkeep.ensureMonths()
    await this.#heartbeat.runOnce()
    for (const service of this.#services) service.start()
  }

  /** Waits a limited time for runs in flight, hands back those that are left, and gives up the lease. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopInTime()
    return this.#stopped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** A Postgres that does not answer must not keep this process alive. Another worker rescues the runs that this one still holds. */
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
    // The heartbeat stops last, because the lease must outlast the runs.
    await Promise.all([
      this.#listener.stop(),
      this.#rescuer.stop(),
      this.#inDoubtCheck.stop(),
      this.#gauges.stop(),
      this.#expiryWarnings.stop(),
      this.#upkeep.stop(),
      this.#auditor.stop(),
      this.#backlogs.stop(),
      ...this.#moduleServices.map((service) => service.stop()),
      this.#pipeline.drain(DRAIN_GRACE_MS),
    ])
    this.#transcripts.stop()
    await this.#tryTo('heartbeat', () => this.#heartbeat.leave())
    for (const target of this.#targets.values()) await target.close?.()
    await Promise.all(this.#pools.map((pool) => pool.end()))
  }

  /** A lost database must not keep the rest from being closed. */
  async #tryTo(service: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.events.emit('service.failed', { service, error })
    }
  }

  #checkRetention(): void {
    for (const { kind, policy, idempotencyRetentionSeconds } of this.#targets.values()) {
      if (idempotencyRetentionSeconds === undefined) continue
      const { retry } = policy
      const problem = checkKeyRetention({ retry, idempotencyRetentionSeconds })
      if (problem !== null) {
        throw new CarillonError('retention_too_short', `target ${kind}: ${problem.message}`, { problems: [problem] })
      }
    }
  }

  /** A pooler may drop the settings of a connection. The worker would then act as the role that logged in. */
  async #checkRole(): Promise<void> {
    const user = await readActingUser(this.#db)
    const role = workerRole(this.#pool.schema)
    if (user === role) return
    const message = `expected to act as ${role}, got ${user}: connect to Postgres itself, not through a pooler`
    throw new CarillonError('role_refused', message)
  }

  async #checkSchema(): Promise<void> {
    const { pending } = await migrationStatus(this.#pool, { modules: this.#modules.map(({ manifest }) => manifest) })
    if (pending.length === 0) return
    throw new CarillonError('schema_outdated', missingMigrationsText(pending))
  }
}

function pick<Value extends object, Key extends keyof Value>(value: Value, key: Key): Partial<Pick<Value, Key>> {
  return value[key] === undefined ? {} : ({ [key]: value[key] } as Pick<Value, Key>)
}
