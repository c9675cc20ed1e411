import { OVERLAP_POLICIES } from '@carillon/api'
import type pg from 'pg'

import { createDb } from '../../src/db/database.ts'
import { createPool, type SeverablePool } from '../../src/db/pool.ts'
import { CarillonError } from '../../src/kernel/errors.ts'
import { Scheduler } from '../../src/scheduler.ts'
import type { TestDatabase } from '../database.ts'
import { ANY_NUMBER, CALLER, EVERY_MINUTE } from '../pipeline.ts'
import { LossyProxy } from './lossy-proxy.ts'
import { ModelClock } from './model-clock.ts'
import { ModelCompletions } from './model-completions.ts'
import { createModuleTables, ModelHooks } from './model-hooks.ts'
import { ModelTarget } from './model-target.ts'
import { MODEL_SESSION, ModelWorker, requireBroken } from './model-worker.ts'
import { SeededRandom } from './seeded-random.ts'

const WORKERS = 3
const SCHEDULES = 5
const LOSS_RATE = 0.02
const FINISH_ROUNDS_MAX = 300
const PASS_MAX_MS = 20_000
const MOMENT_MAX_MS = 1000
/** The relative frequency of each action. */
const WEIGHTS = {
  loop: 36,
  beat: 2,
  pass: 14,
  moment: 8,
  answer: 8,
  complete: 8,
  completeWithin: 3,
  heartbeat: 3,
  rescue: 6,
  runNow: 5,
  cancel: 5,
  editOverlap: 10,
  pauseOrResume: 4,
  replaceSchedule: 1,
  terminate: 3,
  freeze: 2,
  kill: 1,
}

export interface ModelCounts {
  readonly steps: Readonly<Record<string, number>>
  readonly cuts: Readonly<Record<string, number>>
}

/** Several workers and an API that act at random and concurrently on a few schedules, over connections that break. */
export class Model {
  readonly clock: ModelClock
  readonly target: ModelTarget
  readonly #random: SeededRandom
  readonly #database: TestDatabase
  readonly #api: { readonly proxy: LossyProxy; readonly pool: SeverablePool; readonly scheduler: Scheduler }
  readonly #workers: ModelWorker[] = []
  readonly #dead: Promise<void>[] = []
  readonly #pending = new Set<Promise<void>>()
  readonly #hooks: ModelHooks | undefined
  readonly #module: { readonly proxy: LossyProxy; readonly pool: SeverablePool }
  readonly completions: ModelCompletions
  readonly #steps: Record<string, number> = {}
  readonly #cuts: Record<string, number> = { before: 0, during: 0, after: 0, terminated: 0 }

  /** @param p.hasHooks whether the kind of the model's target has hooks */
  private constructor(
    database: TestDatabase,
    random: SeededRandom,
    { api: proxy, module, hasHooks }: { api: LossyProxy; module: LossyProxy; hasHooks: boolean },
  ) {
    this.#database = database
    this.#random = random
    this.clock = new ModelClock('2026-03-02T09:00:00Z')
    const now = (): number => this.clock.instant
    this.#hooks = hasHooks ? new ModelHooks(random, now) : undefined
    this.target = new ModelTarget(random, now, this.#hooks)
    const modulePool = createPool({
      connectionString: module.url,
      applicationName: MODEL_SESSION,
      role: 'carillon_worker',
      maxConnections: 4,
    })
    this.#module = { proxy: module, pool: modulePool }
    this.completions = new ModelCompletions(createDb(modulePool), this.clock, random)
    const pool = createPool({ connectionString: proxy.url, applicationName: MODEL_SESSION, maxConnections: 8 })
    const targets = new Map([[this.target.kind, this.target]])
    const scheduler = new Scheduler({ db: createDb(pool), clock: this.clock, targets }, ANY_NUMBER)
    this.#api = { proxy, pool, scheduler }
  }

  static async start(database: TestDatabase, seed: number): Promise<Model> {
    const random = new SeededRandom(seed)
    await createModuleTables(database.pool)
    const model = new Model(database, random, {
      api: await LossyProxy.start(database.url, random),
      module: await LossyProxy.start(database.url, random),
      hasHooks: seed % 2 === 0,
    })
    for (let n = 0; n < SCHEDULES; n += 1) await model.#create()
    for (let n = 0; n < WORKERS; n += 1) await model.#startWorker()
    return model
  }

  get hasHooks(): boolean {
    return this.#hooks !== undefined
  }

  get counts(): ModelCounts {
    const cuts = { ...this.#cuts }
    for (const { proxy } of [...this.#workers, this.#api, this.#module]) {
      for (const [moment, count] of Object.entries(proxy.cuts)) cuts[moment] = (cuts[moment] ?? 0) + count
    }
    return { steps: this.#steps, cuts }
  }

  /** Takes random actions, several at a time, while connections break. */
  async run(steps: number): Promise<void> {
    for (const { proxy } of [...this.#workers, this.#api, this.#module]) proxy.lossRate = LOSS_RATE
    for (let step = 0; step < steps; step += 1) {
      const name = this.#random.weighted(WEIGHTS)
      this.#steps[name] = (this.#steps[name] ?? 0) + 1
      this.#start(this.#act(name))
      // Up to eight actions are under way at a time, and sometimes none.
      while (this.#pending.size > this.#random.below(8)) await Promise.race(this.#pending)
    }
    await Promise.all(this.#pending)
  }

  /** Ends the faults, pauses every schedule, and works until no run is open. */
  async finish(): Promise<void> {
    this.target.alwaysSucceeds = true
    if (this.#hooks !== undefined) this.#hooks.isCalm = true
    this.target.answerAll()
    for (const worker of this.#workers) worker.isFrozen = false
    for (const { proxy } of [...this.#workers, this.#api, this.#module]) proxy.lossRate = 0
    for (const { id } of await this.#schedules('active')) {
      await this.#request(() => this.#api.scheduler.pause(CALLER, id, { reason: 'the end' }))
    }
    for (let round = 0; round < FINISH_ROUNDS_MAX && (await this.#countOpen()) > 0; round += 1) {
      this.clock.advance(5000)
      await this.#beatAll()
      await Promise.all(this.#workers.map((worker) => worker.rescue()))
      await Promise.all(this.#workers.map((worker) => worker.runLoop()))
      this.target.answerAll()
      await Promise.all(this.#workers.map((worker) => worker.whenIdle()))
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#dead, ...this.#workers.map((worker) => worker.die())])
    for (const { pool, proxy } of [this.#api, this.#module]) {
      await pool.end()
      await proxy[Symbol.asyncDispose]()
    }
  }

  #start(work: Promise<void>): void {
    const pending = work.finally(() => this.#pending.delete(pending))
    this.#pending.add(pending)
  }

  async #act(name: keyof typeof WEIGHTS): Promise<void> {
    const worker = this.#random.pick(this.#workers)
    switch (name) {
      case 'loop':
        return worker?.runLoop()
      case 'beat':
        return worker?.beat()
      case 'rescue':
        return worker?.rescue()
      case 'pass':
        this.clock.advance(1000 + this.#random.below(PASS_MAX_MS))
        return this.#beatAll()
      case 'moment':
        this.clock.advance(this.#random.below(MOMENT_MAX_MS))
        return
      case 'answer':
        this.target.answerOne()
        return
      case 'freeze':
        if (worker !== undefined) worker.isFrozen = !worker.isFrozen
        return
      case 'kill':
        return this.#replace(worker)
      case 'terminate':
        return this.#terminate()
      case 'complete':
      case 'heartbeat':
      case 'completeWithin':
        return this.#completeFromElsewhere(name)
      default:
        return this.#change(name)
    }
  }

  /** Lets each worker that is not frozen keep its lease, or more workers would die than work. */
  async #beatAll(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.beat()))
  }

  /** What the called side does, mostly about recent calls. */
  async #completeFromElsewhere(name: 'complete' | 'heartbeat' | 'completeWithin'): Promise<void> {
    const { made } = this.target
    const recent = this.#random.chance(0.8) ? made.slice(-8) : made
    const call = this.#random.pick(recent)
    if (call === undefined) return
    switch (name) {
      case 'complete':
        return this.#request(() => this.completions.complete(call))
      case 'heartbeat':
        return this.#request(() => this.completions.beat(call))
      case 'completeWithin': {
        const others = recent.filter(({ runId }) => runId !== call.runId).slice(0, this.#random.below(3))
        const calls = [...new Map([call, ...others].map((each) => [each.runId, each])).values()]
        return this.#request(() => this.completions.completeWithin(calls, [this.#random.below(3)]))
      }
    }
  }

  /** Makes one request that a user could make. A rejected request is not a fault. */
  async #change(name: 'runNow' | 'cancel' | 'editOverlap' | 'pauseOrResume' | 'replaceSchedule'): Promise<void> {
    const { scheduler } = this.#api
    const schedule = this.#random.pick(await this.#schedules())
    if (schedule === undefined) return
    const { id, state, revision } = schedule
    switch (name) {
      case 'runNow':
        return this.#request(() => scheduler.runNow(CALLER, id))
      case 'cancel': {
        const run = this.#random.pick(await this.#openRuns())
        return run === undefined ? undefined : this.#request(() => scheduler.cancel(CALLER, run))
      }
      case 'editOverlap': {
        const overlap = this.#overlap()
        return this.#request(() =>
          scheduler.edit(CALLER, id, { policy: policyOf(overlap, this.#random.pick([0, 3]) ?? 0) }, { revision }),
        )
      }
      case 'pauseOrResume':
        return this.#request(() =>
          state === 'active' ? scheduler.pause(CALLER, id, { reason: 'a while' }) : scheduler.resume(CALLER, id),
        )
      case 'replaceSchedule':
        await this.#request(() => scheduler.delete(CALLER, id))
        return this.#request(() => this.#create())
    }
  }

  async #request(request: () => Promise<unknown>): Promise<void> {
    try {
      await request()
    } catch (error) {
      if (!(error instanceof CarillonError)) requireBroken(error)
    }
  }

  #create(): Promise<unknown> {
    return this.#api.scheduler.create(CALLER, {
      ...EVERY_MINUTE,
      policy: policyOf(this.#overlap(), this.#random.pick([0, 3]) ?? 0),
    })
  }

  /** Seldom `allow`, because the triggers do not check a schedule for two runs at a time once its policy was `allow`. */
  #overlap(): string {
    return (
      this.#random.pick(OVERLAP_POLICIES.filter((policy) => policy !== 'allow' || this.#random.chance(0.2))) ?? 'forbid'
    )
  }

  async #startWorker(): Promise<void> {
    const worker = await ModelWorker.start(this.#database.url, this.clock, this.target, this.#random)
    worker.proxy.lossRate = this.#api.proxy.lossRate
    this.#workers.push(worker)
    await worker.beat()
  }

  async #replace(worker: ModelWorker | undefined): Promise<void> {
    if (worker === undefined) return
    this.#workers.splice(this.#workers.indexOf(worker), 1)
    for (const [moment, count] of Object.entries(worker.proxy.cuts)) {
      this.#cuts[moment] = (this.#cuts[moment] ?? 0) + count
    }
    this.#dead.push(worker.die())
    await this.#startWorker()
  }

  /** Lets Postgres end one session, whatever it is doing. */
  async #terminate(): Promise<void> {
    const { rowCount } = await this.#database.pool.query(
      `select pg_terminate_backend(pid)
       from pg_stat_activity
       where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()
       order by random() limit 1`,
      [MODEL_SESSION],
    )
    this.#cuts['terminated'] = (this.#cuts['terminated'] ?? 0) + (rowCount ?? 0)
  }

  async #schedules(state?: string): Promise<{ id: string; state: string; revision: number }[]> {
    const { rows } = await this.#query<{ id: string; state: string; revision: number }>(
      `select id, state, revision from carillon.schedules where state <> 'deleted' and ($1::text is null or state::text = $1)
       order by id`,
      [state ?? null],
    )
    return rows
  }

  async #openRuns(): Promise<string[]> {
    const { rows } = await this.#query<{ id: string }>(
      'select id from carillon.runs where completed_at is null order by id',
    )
    return rows.map(({ id }) => id)
  }

  async #countOpen(): Promise<number> {
    return (await this.#openRuns()).length
  }

  /** Queries over a connection that does not break. */
  #query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<pg.QueryResult<Row>> {
    return this.#database.pool.query<Row>(text, values)
  }
}

function policyOf(overlap: string, autoPauseThreshold: number): object {
  return { overlap, autoPauseThreshold, retry: { maxAttempts: 3, baseSeconds: 10, capSeconds: 40 } }
}
