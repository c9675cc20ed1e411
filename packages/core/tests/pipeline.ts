import { setImmediate } from 'node:timers/promises'

import { CadenceCache } from '../src/cadences/cadence-cache.ts'
import { createDb, type Db } from '../src/db/database.ts'
import { createPool } from '../src/db/pool.ts'
import { Events } from '../src/kernel/events.ts'
import { Lease } from '../src/kernel/lease.ts'
import type { Caller } from '../src/kernel/scope.ts'
import type { Run, Schedule } from '../src/ledger/records.ts'
import { Heartbeat } from '../src/pipeline/heartbeat.ts'
import { Hooks } from '../src/pipeline/hooks.ts'
import type { Pipeline as WorkerPipeline } from '../src/pipeline/pipeline.ts'
import { Rescuer } from '../src/pipeline/rescuer.ts'
import { TranscriptWriters, type TranscriptWritersOptions } from '../src/pipeline/transcript-writers.ts'
import type { AuthorizationPort } from '../src/ports/authorization.ts'
import type { Target } from '../src/ports/target.ts'
import { Scheduler } from '../src/scheduler.ts'
import type { SchedulerOptions } from '../src/schedules/options.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { ManualClock } from './manual-clock.ts'
import { pipelineOf } from './pipeline-parts.ts'
import { ProcessClock } from './process-clock.ts'
import { ScriptedTarget } from './scripted-target.ts'
import { refuseUndeclaredNulls as onAnswer } from './statements/declared-nulls.ts'
import { WatchedTarget } from './watched-target.ts'

export { DAY, HOUR, MINUTE } from './durations.ts'

export const HEARTBEAT_MS = 5000

export const CALLER: Caller = { tenantId: 'acme', projectId: 'web', subject: 'user:alice' }

/** A schedule that calls the scripted target every minute. */
export const EVERY_MINUTE = {
  name: 'every minute',
  cadence: { kind: 'cron', expression: '* * * * *', timezone: 'UTC' },
  target: { kind: 'test' },
}

/** No quota, for tests with more schedules than one user may have by default. */
export const ANY_NUMBER = { maxSchedulesPerProject: null, maxSchedulesPerUser: null }

/** Parts that replace those of the pipeline in one worker. */
interface WorkerParts {
  readonly db?: Db
  readonly authorization?: AuthorizationPort
  readonly clock?: ProcessClock
  /** The number of schedules that one transaction begins at most. */
  readonly batchSize?: number
  readonly transcripts?: TranscriptWritersOptions & { readonly db?: Db }
}

/** The parts of a worker that a test drives by hand. */
export class TestWorker {
  readonly events = new Events()
  readonly lease: Lease
  readonly loop: WorkerPipeline
  readonly heartbeat: Heartbeat
  readonly rescuer: Rescuer
  readonly transcripts: TranscriptWriters
  /** While it is stopped, this worker is as good as dead or suspended. */
  readonly process: ProcessClock
  readonly #targets: readonly WatchedTarget[]

  constructor(pipeline: Pipeline, name: string, concurrency: number, parts: WorkerParts) {
    this.#targets = [...pipeline.targets.values()].map((target) => new WatchedTarget(target))
    const targets = new Map(this.#targets.map((target) => [target.kind, target]))
    const { db = pipeline.workerDb, authorization, batchSize = 500 } = parts
    const clock = parts.clock ?? new ProcessClock(pipeline.clock)
    this.process = clock
    this.lease = new Lease(clock)
    const hooks = new Hooks({ clock, events: this.events, targets })
    const deps = { db, clock, targets, events: this.events, lease: this.lease, hooks }
    this.transcripts = new TranscriptWriters({ ...deps, db: parts.transcripts?.db ?? db }, parts.transcripts)
    this.loop = pipelineOf({ ...deps, authorization, transcripts: this.transcripts }, { concurrency, batchSize })
    const onCancel = (runId: string): void => this.loop.cancel(runId)
    this.heartbeat = new Heartbeat(
      { ...deps, failing: () => null, fullMsAgo: () => this.loop.fullMsAgo, onCancel },
      { name, targetKinds: [...targets.keys()], heartbeatMs: HEARTBEAT_MS },
    )
    this.rescuer = new Rescuer(
      { ...deps, cadences: new CadenceCache(), targetKinds: [...targets.keys()] },
      { periodMs: HEARTBEAT_MS / 2 },
    )
  }

  /** Begins all due slots, takes all due runs, and waits until every one of them is settled. */
  async runDue(): Promise<void> {
    await this.startDue()
    await this.loop.whenIdle()
  }

  /** Begins all due slots, takes all due runs, and waits until their targets have been called, but not until they answer. */
  async startDue(): Promise<void> {
    await this.heartbeat.runOnce()
    for (;;) {
      // A claim may have found a lane locked. Real time would make the loop look again, but the test's clock stands still.
      this.loop.wake()
      const { begun, skipped, taken, ended } = await this.loop.runOnce()
      if (begun + skipped + taken + ended === 0) break
    }
    await this.#whenCalled()
  }

  /** Resolves once each started attempt has called its target, or has ended because of its permission check. */
  async #whenCalled(): Promise<void> {
    const sum = (count: (target: WatchedTarget) => number): number =>
      this.#targets.reduce((total, target) => total + count(target), 0)
    while (sum(({ approaching }) => approaching) > 0 && this.loop.inFlight > sum(({ busy }) => busy)) {
      await setImmediate()
    }
  }

  /** Resolves at the next settlement of this worker. */
  whenSettled(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.events.on('attempt.settled', () => {
        stop()
        resolve()
      })
    })
  }
}

/** The whole pipeline on a database of its own, with a clock that only the test moves. */
export class Pipeline implements AsyncDisposable {
  readonly database: TestDatabase
  /** Connected as superuser, so row-level security does not apply: for the test's own queries. */
  readonly db: Db
  /** Has the permissions of the role carillon_worker only. */
  readonly workerDb: Db
  readonly clock: ManualClock
  readonly target = new ScriptedTarget()
  readonly targets: ReadonlyMap<string, Target>
  readonly scheduler: Scheduler
  readonly events = new Events()

  private constructor(database: TestDatabase, now: string, options: SchedulerOptions) {
    this.database = database
    this.db = createDb(database.pool, { onAnswer })
    const workerPool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
    this.workerDb = createDb(workerPool, { onAnswer })
    this.clock = new ManualClock(new Date(now))
    this.targets = new Map<string, Target>([[this.target.kind, this.target]])
    const { db, clock, targets, events } = this
    this.scheduler = new Scheduler({ db, clock, targets, events }, options)
  }

  /** @param database an empty database; by default a new one */
  static async at(now: string, database?: TestDatabase, options: SchedulerOptions = {}): Promise<Pipeline> {
    return new Pipeline(database ?? (await createDatabase()), now, options)
  }

  /** Advances the clock while these workers beat at their usual pace, so that they keep their leases and runs. */
  async pass(ms: number, ...workers: readonly TestWorker[]): Promise<void> {
    for (let left = ms; left > 0; left -= HEARTBEAT_MS) {
      this.clock.advance(Math.min(left, HEARTBEAT_MS))
      for (const worker of workers) await worker.heartbeat.runOnce()
    }
  }

  worker(name = 'worker', concurrency = 200, parts: WorkerParts = {}): TestWorker {
    return new TestWorker(this, name, concurrency, parts)
  }

  create(input: object = {}): Promise<Schedule> {
    return this.scheduler.create(CALLER, { ...EVERY_MINUTE, ...input })
  }

  /** All runs of a schedule, earliest slot first. */
  async ledger({ id }: { readonly id: string }): Promise<Run[]> {
    return (await this.scheduler.listRuns(CALLER, id, { limit: 200 })).toReversed()
  }

  /** All runs of a schedule as text: `09:01 succeeded`, `09:02 skipped overlap`. */
  async lines(schedule: { readonly id: string }): Promise<string[]> {
    return (await this.ledger(schedule)).map(({ scheduledFor, state, reason }) =>
      [new Date(scheduledFor).toISOString().slice(11, 16), state, reason].filter((part) => part !== null).join(' '),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.workerDb.close()
    await this.database[Symbol.asyncDispose]()
  }
}
