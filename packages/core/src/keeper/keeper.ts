import type { AuthorizationPort } from '../authorization.ts'
import type { Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import type { Events } from '../events.ts'
import type { Lease } from '../lease.ts'
import { Service } from '../service.ts'
import { transact, type Db } from '../store/database.ts'
import type { Rights } from '../store/rights.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { takeRun, type TakenRun } from '../store/taken-run.ts'
import { findWaitingSlot } from '../store/waiting-runs.ts'
import type { Target } from '../target.ts'
import { AgendaWatch } from './agenda-watch.ts'
import type { AbortReason } from './attempt.ts'
import { beginBatch, type BegunBatch } from './begin-batch.ts'
import { isStillDue } from './begin-plan.ts'
import { Dispatcher } from './dispatcher.ts'
import { lanesOf, shareRoom, splitLanes, type LaneShare } from './lanes.ts'
import { RightsDesk } from './rights-desk.ts'
import { Settler } from './settler.ts'
import { SlotBook } from './slot-book.ts'
import { Strays } from './strays.ts'

export interface KeeperDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly jobs: Jobs
  readonly lease: Lease
  readonly targets: ReadonlyMap<string, Target>
  /** Whether owners still have access, besides what members say. */
  readonly authorization?: AuthorizationPort | undefined
}

export interface KeeperOptions {
  /** How many runs this worker holds at most. @default 200 */
  readonly concurrency?: number
  /** How many schedules one transaction begins at most. @default 500 */
  readonly batchSize?: number
  /** For how long the ledger remembers. */
  readonly retentionMs: number
}

export interface KeeperCounts {
  /** Slots that began to run. */
  readonly begun: number
  /** Slots that were recorded as not run. */
  readonly skipped: number
  /** How long until something may be due. */
  readonly restMs: number
}

const CONCURRENCY_DEFAULT = 200
const BATCH_SIZE_DEFAULT = 500
/** Few at first, so that who comes due together with a herd does not wait until a whole batch of it is written. */
const FIRST_BATCH = 100
const BEGINNERS_OF_A_HERD = 2
/** Without room or a lease, until one of them may be had. */
const IDLE_PAUSE_MS = 1000
/** Another worker holds what is due, or has just taken it. */
const CONTENDED_PAUSE_MS = 5
/** For how long who gave a job back fetches no other one, so that it is left to those with room. */
const FULL_PAUSE_MS = 1000
const FAILURE_PAUSE_MS = 250
/** After a drain's grace, for writing what was handed back. What cannot be written by then is left to a rescuer. */
const HAND_BACK_MS = 4000

/**
 * The loop in every worker: look at the agenda, sleep to the next slot by Postgres' clock, claim, begin, dispatch, settle.
 * No leader, no election: row locks share the work, and only the database says what is due (I10).
 */
export class Keeper extends Service<KeeperCounts> {
  override readonly name = 'keeper'
  readonly #deps: KeeperDeps
  readonly #options: Required<KeeperOptions>
  readonly #watch: AgendaWatch
  readonly #book = new SlotBook()
  readonly #dispatcher: Dispatcher
  readonly #settler: Settler
  readonly #strays: Strays
  readonly #draining = Promise.withResolvers<void>()
  #isDraining = false
  #isCramped = false
  /** How many batches begin at a time: with a herd at hand, while one is decided another one is written. */
  #beginners = 1
  /** Taken when there was no room: what is freed before the rest begins must not be slept over. */
  #whenRoomAgain: Promise<void> | undefined
  #wake = new AbortController()

  constructor(deps: KeeperDeps, options: KeeperOptions) {
    super(deps, FAILURE_PAUSE_MS)
    this.#deps = deps
    this.#options = { concurrency: CONCURRENCY_DEFAULT, batchSize: BATCH_SIZE_DEFAULT, ...options }
    this.#watch = new AgendaWatch({ ...deps, lanes: lanesOf([...deps.targets.keys()]) })
    this.#settler = new Settler(deps)
    const { clock, targets } = deps
    const { concurrency } = this.#options
    const rights = new RightsDesk(deps)
    this.#dispatcher = new Dispatcher({ clock, targets, concurrency, rights, settler: this.#settler, book: this.#book })
    this.#strays = new Strays({ ...deps, held: () => this.#dispatcher.held })
    deps.lease.onLost(() => this.#dispatcher.abortAll('lease_lost'))
  }

  get inFlight(): number {
    return this.#dispatcher.inFlight
  }

  /** Looks once, and begins what is due and has room. Does not wait for what it began: see `whenIdle`. */
  async runOnce(): Promise<KeeperCounts> {
    // Full, or nearly: a batch for each place that becomes free would cost as much as one for all of them.
    if (this.#isCramped) await this.#deps.clock.gather()
    const { batchSize } = this.#options
    const wanted = this.#beginners > 1 ? batchSize * this.#beginners : Math.min(batchSize, FIRST_BATCH)
    const room = this.#dispatcher.reserve(wanted)
    this.#isCramped = room < wanted
    this.#whenRoomAgain = room === 0 ? this.#dispatcher.whenFreed() : undefined
    try {
      return await this.#beginDue(room)
    } finally {
      this.#dispatcher.release(room)
    }
  }

  /**
   * The next attempt of a waiting run: what a job of the engine asks for. Nothing happens if it waits no longer. A worker
   * that is full gives the job back, for its engine holds it locked and another worker may be idle.
   */
  async attempt(slot: { scheduleId: string; scheduledFor: number }): Promise<void> {
    const { scheduleId, scheduledFor } = slot
    const { db, clock, lease } = this.#deps
    if (!(await this.#reserveOne())) {
      await this.#giveBack(slot)
      return
    }
    try {
      const { workerId } = lease
      if (workerId === undefined) throw new Error('this worker holds no lease')
      await this.#strays.watch(workerId, async () => {
        const run = await transact(db, clock, async (tx) => {
          await lockSchedules(tx, { scheduleIds: [scheduleId] })
          return takeRun(tx, { scheduleId, scheduledFor, workerId, now: clock.databaseNow() })
        })
        if (run !== undefined) this.#startAll([run], workerId, null)
      })
    } finally {
      this.#dispatcher.release(1)
    }
  }

  /** Looks again now: something may be due sooner than was thought. */
  wake(): void {
    this.#watch.forget()
    this.#wake.abort()
  }

  cancel(runId: string): void {
    this.#dispatcher.abort(runId, 'cancel')
  }

  whenIdle(): Promise<void> {
    return this.#dispatcher.whenIdle()
  }

  /**
   * Stops claiming for good, lets what is under way end within the grace, and hands the rest back: uncharged, to be taken
   * up by another worker at once. Ends in time whether the database answers or not.
   */
  async drain(graceMs: number): Promise<void> {
    const { clock } = this.#deps
    this.#isDraining = true
    this.#draining.resolve()
    const givenUp = Promise.withResolvers<void>()
    const stopTimers = [
      clock.after(graceMs, () => this.#dispatcher.abortAllFromNowOn('hand_back' satisfies AbortReason)),
      clock.after(graceMs + HAND_BACK_MS, () => {
        this.#settler.abandon()
        givenUp.resolve()
      }),
    ]
    const idle = this.stop().then(() => this.#dispatcher.whenIdle())
    await Promise.race([idle.then(() => this.#strays.stop()), givenUp.promise])
    for (const stopTimer of stopTimers) stopTimer()
  }

  protected override async rest({ restMs }: KeeperCounts, signal: AbortSignal): Promise<void> {
    if (restMs <= 0) return
    const early = AbortSignal.any([signal, this.#wake.signal])
    const freed = this.#whenRoomAgain === undefined ? [] : [this.#whenRoomAgain]
    await Promise.race([this.#deps.clock.sleep(restMs, early), ...freed])
    if (this.#wake.signal.aborted) this.#wake = new AbortController()
    else if (this.#watch.restMs === restMs) this.#watch.slept()
  }

  async #beginDue(room: number): Promise<KeeperCounts> {
    const { workerId } = this.#deps.lease
    if (workerId === undefined || room === 0) return { begun: 0, skipped: 0, restMs: IDLE_PAUSE_MS }
    const { lanes, slotAt } = await this.#watch.findDue()
    if (lanes.length === 0) return { begun: 0, skipped: 0, restMs: this.#watch.restMs }
    const beginners = Math.min(this.#beginners, room)
    const shares = splitLanes(lanes, beginners).map((portion) => shareRoom(portion, Math.floor(room / beginners)))
    const ended = await Promise.allSettled(shares.map((share) => this.#begin(share, { workerId, slotAt })))
    const batches = ended.filter((batch) => batch.status === 'fulfilled').map(({ value }) => value)
    const claimed = sumOf(batches.map(({ plans }) => plans.length))
    this.#beginners = claimed * 2 >= room ? BEGINNERS_OF_A_HERD : 1
    // What one batch could not begin does not keep back what the other one did.
    const failed = ended.find((batch) => batch.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    const begun = sumOf(batches.map((batch) => batch.begun.length))
    const lines = sumOf(batches.map(({ plans }) => sumOf(plans.map(({ runs }) => runs.length))))
    return { begun, skipped: lines - begun, restMs: claimed > 0 ? 0 : CONTENDED_PAUSE_MS }
  }

  async #begin({ lanes, perLane }: LaneShare, claim: { workerId: string; slotAt: number | null }): Promise<BegunBatch> {
    const { retentionMs } = this.#options
    const { workerId } = claim
    const options = { ...claim, lanes: this.#watch.from(lanes), perLane }
    const batch = await this.#strays.watch(workerId, async () => {
      const begun = await beginBatch({ ...this.#deps, book: this.#book, retentionMs }, options)
      this.#tell(begun)
      this.#startAll(begun.begun, workerId, begun.rights)
      return begun
    })
    this.#watch.claimed(batch.last)
    // What is written in portions comes to lie before others that were claimed.
    if (batch.plans.some((plan) => isStillDue(plan, batch.now))) this.#watch.forget()
    return batch
  }

  /**
   * If the lease was lost while they were being taken, who held them was told to stop before they came: nobody would stop
   * them now, and a rescuer is about to find them (I12).
   */
  #startAll(runs: readonly TakenRun[], workerId: string, rights: Rights | null): void {
    if (this.#deps.lease.workerId !== workerId) return
    for (const run of runs) this.#dispatcher.start(run, rights)
  }

  /** Sets room aside for a run. Waits while all of it is only set aside, which is not for long; false if it is in use. */
  async #reserveOne(): Promise<boolean> {
    while (!this.#isDraining && this.#dispatcher.reserve(1) === 0) {
      if (this.#dispatcher.isFull) return false
      await Promise.race([this.#dispatcher.whenFreed(), this.#draining.promise])
    }
    if (this.#isDraining) throw new Error('this worker is going down')
    return true
  }

  /**
   * Enqueues a job anew, at once, so that an idle worker is told of it. Then keeps this place in the engine until there may
   * be room: it would fetch the job again before anybody else, and with everybody full all that wait would go round and
   * round. Not for an instant to come: then this worker would be back from its rest just in time.
   */
  async #giveBack(slot: { scheduleId: string; scheduledFor: number }): Promise<void> {
    const { db, clock, jobs } = this.#deps
    const freed = this.#dispatcher.whenFreed()
    await transact(db, clock, async (tx) => {
      await lockSchedules(tx, { scheduleIds: [slot.scheduleId] })
      const waiting = await findWaitingSlot(tx, slot)
      if (waiting !== undefined) await jobs.enqueue(tx, [{ ...waiting, runAt: null }])
    })
    const early = new AbortController()
    await Promise.race([freed, this.#draining.promise, clock.sleep(FULL_PAUSE_MS, early.signal)])
    early.abort()
  }

  #tell({ now, plans, begun }: BegunBatch): void {
    const { events } = this.#deps
    for (const { runId, tenantId, projectId, scheduleId, targetKind, scheduledFor } of begun) {
      const latenessMs = now - scheduledFor
      events.emit('run.began', { runId, tenantId, projectId, scheduleId, targetKind, scheduledFor, latenessMs })
    }
    for (const { schedule, advance, runs } of plans) {
      const { tenantId, projectId, id: scheduleId, targetKind } = schedule
      for (const { reason, scheduledFor } of runs) {
        if (reason === null) continue
        events.emit('slot.skipped', { tenantId, projectId, scheduleId, targetKind, scheduledFor, reason })
      }
      if (advance.state === 'active') continue
      const changed = { tenantId, projectId, scheduleId, actor: 'system:carillon' }
      if (advance.pausedReason === null) events.emit('schedule.completed', changed)
      else events.emit('schedule.paused', { ...changed, reason: advance.pausedReason })
    }
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}
