import { setTimeout as sleep } from 'node:timers/promises'

import { CarillonError, createDb, createPool, Scheduler, type Schedule, type Target } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'

import { nameOf } from './schedule-name.ts'
import type { SeededRandom } from './seeded-random.ts'
import { BEHAVIOURS, type Behaviour, type TargetServer } from './target-server.ts'

const CALLER = { tenantId: 'acme', projectId: 'web', subject: 'user:alice' }

const OVERLAPS = ['forbid', 'queue', 'allow', 'replace'] as const
type Overlap = (typeof OVERLAPS)[number]

const COPIES = 2
/** The time between two changes by the API client. */
const CHANGE_EVERY_MS = 120
/** Many attempts, so that a run that loses several workers continues. Short waits, so that a stuck run is noticed. */
const RETRY = { maxAttempts: 30, baseSeconds: 1, capSeconds: 2 }

/** Schedules with a slot every few seconds under every overlap policy, and an API client that keeps changing them. */
export class Workload implements AsyncDisposable {
  readonly pool: ReturnType<typeof createPool>
  readonly scheduler: Scheduler
  /** How often the API client was refused or cut off, by code or message. */
  readonly refusals = new Map<string, number>()
  changes = 0
  readonly #target: TargetServer
  readonly #random: SeededRandom
  #schedules: Schedule[] = []
  #isChanging = false
  #changing: Promise<void> = Promise.resolve()

  constructor(
    databaseUrl: string,
    { target, random }: { readonly target: TargetServer; readonly random: SeededRandom },
  ) {
    // The API client connects directly to Postgres. The proxy's faults are for workers only.
    this.pool = createPool({ connectionString: databaseUrl, maxConnections: 4, applicationName: 'faults api' })
    const targets = new Map<string, Target>([['http', createHttpTarget({ allowedHosts: ['127.0.0.1'] })]])
    const limits = { minimumSeconds: 1, maxSchedulesPerProject: null, maxSchedulesPerUser: null }
    this.scheduler = new Scheduler({ db: createDb(this.pool), targets }, limits)
    this.#target = target
    this.#random = random
  }

  /** A few schedules for each overlap policy and behaviour of the target. */
  async createAll(): Promise<void> {
    for (let copy = 0; copy < COPIES; copy += 1) {
      for (const overlap of OVERLAPS) for (const behaviour of BEHAVIOURS) await this.#create(overlap, behaviour)
    }
  }

  /** Changes schedules until `stopChanging`. */
  startChanging(): void {
    this.#isChanging = true
    this.#changing = this.#change()
  }

  async stopChanging(): Promise<void> {
    this.#isChanging = false
    await this.#changing
  }

  /** Requests a run of every schedule at once, so that a fault hits busy workers. Resolves when all requests are answered. */
  async rush(): Promise<void> {
    await Promise.all(this.#schedules.map(({ id }) => this.#try(() => this.scheduler.runNow(CALLER, id))))
  }

  /** Pauses all active schedules, including those that this client does not know. */
  async pauseAll(): Promise<void> {
    const active = await this.scheduler.list(CALLER, { state: 'active', limit: 200 })
    for (const { id } of active) await this.scheduler.pause(CALLER, id, { reason: 'the faults are over' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopChanging()
    await this.pool.end()
  }

  async #create(overlap: Overlap, behaviour: Behaviour): Promise<void> {
    const random = this.#random
    const grid = { everyMs: 1000 * random.between(1, 6), anchorMs: 1000 * Math.ceil(Date.now() / 1000) }
    const schedule = await this.scheduler.create(CALLER, {
      name: nameOf(`${overlap} ${behaviour}`, grid),
      cadence: {
        kind: 'interval',
        every: `PT${grid.everyMs / 1000}S`,
        anchor: new Date(grid.anchorMs).toISOString(),
      },
      target: { kind: 'http', url: this.#target.url(behaviour), method: 'POST', timeoutSeconds: 20 },
      policy: { overlap, retry: RETRY, autoPauseThreshold: 0, missed: random.chance(0.5) ? 'skip' : 'run_once' },
    })
    this.#schedules.push(schedule)
  }

  async #change(): Promise<void> {
    while (this.#isChanging) {
      await this.#try(() => this.#changeOne())
      await sleep(CHANGE_EVERY_MS)
    }
  }

  /**
   * Makes one change, and counts it or its refusal. A change may be refused, or cut off when Postgres crashes. Neither is a fault of
   * Carillon.
   */
  async #try(change: () => Promise<unknown>): Promise<void> {
    try {
      await change()
      this.changes += 1
    } catch (error) {
      const reason = error instanceof CarillonError ? error.code : String(error)
      this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1)
    }
  }

  async #changeOne(): Promise<void> {
    const { scheduler } = this
    const random = this.#random
    const schedule = random.pick(this.#schedules)
    if (schedule === undefined || this.#schedules.length < COPIES * OVERLAPS.length * BEHAVIOURS.length) {
      await this.#create(random.pick(OVERLAPS) ?? 'forbid', random.pick(BEHAVIOURS) ?? 'quick')
      return
    }
    const { id } = schedule
    const dice = random.next()
    if (dice < 0.4) await scheduler.runNow(CALLER, id)
    else if (dice < 0.55) await this.#cancelOne(id)
    else if (dice < 0.75) await this.#pauseOrResume(id)
    else if (dice < 0.93) await this.#editOverlap(id)
    else await this.#delete(id)
  }

  async #cancelOne(id: string): Promise<void> {
    const open = (await this.scheduler.listRuns(CALLER, id, { limit: 20 })).filter(
      ({ completedAt }) => completedAt === null,
    )
    const run = this.#random.pick(open)
    if (run !== undefined) await this.scheduler.cancel(CALLER, run.id)
  }

  /** Resumes a paused schedule if there is one, else pauses this one. So most schedules are active. */
  async #pauseOrResume(id: string): Promise<void> {
    const paused = this.#random.pick(await this.scheduler.list(CALLER, { state: 'paused', limit: 200 }))
    if (paused === undefined) await this.scheduler.pause(CALLER, id, { reason: 'for a moment' })
    else await this.scheduler.resume(CALLER, paused.id)
  }

  async #editOverlap(id: string): Promise<void> {
    const { revision, policy } = await this.scheduler.get(CALLER, id)
    const overlap = this.#random.pick(OVERLAPS)
    await this.scheduler.edit(CALLER, id, { policy: { ...policy, overlap } }, { revision })
  }

  /** Forgets the schedule first. If the answer is lost, this client does not know whether the schedule is deleted. */
  async #delete(id: string): Promise<void> {
    this.#schedules = this.#schedules.filter((schedule) => schedule.id !== id)
    await this.scheduler.delete(CALLER, id)
  }
}
