import type { Permissions } from '../access/grants.ts'
import { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { MonitoredPart } from '../kernel/failure-record.ts'
import type { Lease } from '../kernel/lease.ts'
import { Service } from '../kernel/service.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { lanesOf } from '../policy/lane-names.ts'
import type { AuthorizationPort } from '../ports/authorization.ts'
import type { Target } from '../ports/target.ts'
import { isStillDue } from './begin-plan.ts'
import { beginBatch, emitBegun } from './begin.ts'
import { Dispatcher } from './dispatcher.ts'
import { DueWatch, RoomShares, splitLanes } from './due-watch.ts'
import { InDoubtCommits } from './in-doubt-commits.ts'
import { PermissionChecker } from './permissions.ts'
import { SettleQueue } from './settle-queue.ts'
import type { DueLane } from './store/look.ts'
import { takeWaiting } from './store/take.ts'

export interface PipelineLoopDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  readonly targets: ReadonlyMap<string, Target>
  /**
   * Asked before each attempt, in addition to the project's member list, whether the schedule's owner and the grant's subject still
   * have access. @default the member list alone decides
   */
  readonly authorization?: AuthorizationPort | undefined
}

export interface PipelineLoopOptions {
  /** How many runs this worker holds at most. @default `CONCURRENCY_DEFAULT` */
  readonly concurrency?: number
  /** How many schedules one transaction begins at most. @default `BATCH_SIZE_DEFAULT` */
  readonly batchSize?: number
  /** For how long the ledger keeps its lines. */
  readonly retentionMs: number
}

export interface PipelineLoopCounts {
  /** Slots whose runs began. */
  readonly begun: number
  /** Slots that were recorded as not run. */
  readonly skipped: number
  /** Waiting runs that were taken for their next attempt. */
  readonly taken: number
  /** How long to sleep until something may be due. */
  readonly sleepMs: number
}

const CONCURRENCY_DEFAULT = 200
const BATCH_SIZE_DEFAULT = 500
/**
 * How many schedules and waiting runs one pass of the loop claims at most, unless the pass before it found a herd. It is small so that
 * a single schedule due at the same instant as a herd starts quickly.
 */
const FIRST_BATCH = 100
/** How many transactions begin a herd at the same time: the worker decides about one while Postgres writes the other. */
const TRANSACTIONS_OF_A_HERD = 2
/** The loop sleeps this long if the worker has no room or no lease. Room that becomes free ends the sleep early. */
const IDLE_PAUSE_MS = 1000
/** The pause after a pass that failed. It doubles with each further failure in a row. */
const FAILURE_PAUSE_MS = 250
/**
 * How long a drain goes on after its grace period, to write which runs it hands back. The rescuer of another worker finds the runs that
 * it could not hand back by then.
 */
const HAND_BACK_MS = 4000

/** The result of one claim. */
interface ClaimCounts {
  /** Schedules that were locked, or runs that were taken. */
  readonly claimed: number
  readonly begun: number
  readonly skipped: number
  readonly taken: number
}

const NOTHING = { begun: 0, skipped: 0, taken: 0 }

/** What one pass of the loop claims: up to `perLane` rows of each lane. */
interface Claims {
  readonly lanes: readonly DueLane[]
  readonly perLane: number
  readonly workerId: string
  /** The instant of slots that are claimed a few milliseconds ahead of it; null if everything is due already. */
  readonly slotAt: number | null
}

/**
 * The loop in every worker: look at what comes due, sleep until then by Postgres' clock, claim, begin or take, dispatch, settle.
 * There is no leader and no election: row locks share the work among workers, and only Postgres decides what is due (I10).
 */
export class PipelineLoop extends Service<PipelineLoopCounts> {
  override readonly name = 'pipeline'
  readonly #deps: PipelineLoopDeps
  readonly #options: Required<PipelineLoopOptions>
  readonly #watch: DueWatch
  readonly #shares = new RoomShares()
  readonly #cadences = new CadenceCache()
  readonly #dispatcher: Dispatcher
  readonly #settleQueue: SettleQueue
  readonly #inDoubt: InDoubtCommits
  /** Claims in progress: added before the transaction starts, removed once this worker holds the runs. */
  readonly #claims = new Set<Promise<unknown>>()
  /** Each of them can fail while the loop and the others go on. */
  readonly parts: readonly MonitoredPart[]
  /** True if the last pass had less room than it wanted. */
  #isNearlyFull = false
  /** How many transactions begin slots at the same time. */
  #transactions = 1
  /** Resolves when room becomes free. Set before the sleep if a pass had no room, so that a run that ends in between is not missed. */
  #whenFreed: Promise<void> | undefined
  #wake = new AbortController()

  constructor(deps: PipelineLoopDeps, options: PipelineLoopOptions) {
    super(deps, { firstMs: FAILURE_PAUSE_MS })
    this.#deps = deps
    this.#options = { concurrency: CONCURRENCY_DEFAULT, batchSize: BATCH_SIZE_DEFAULT, ...options }
    this.#watch = new DueWatch({ ...deps, lanes: lanesOf([...deps.targets.keys()]) })
    const checker = new PermissionChecker(deps)
    const settleQueue = new SettleQueue(deps)
    const { concurrency } = this.#options
    this.#settleQueue = settleQueue
    this.#dispatcher = new Dispatcher({ ...deps, concurrency, checker, settleQueue, cadences: this.#cadences })
    this.#inDoubt = new InDoubtCommits({ ...deps, held: () => this.#dispatcher.held, claims: this.#claims })
    this.parts = [settleQueue, checker, this.#dispatcher, this.#inDoubt]
    deps.lease.onLost(() => this.#dispatcher.abortAll('lease_lost'))
  }

  get inFlight(): number {
    return this.#dispatcher.inFlight
  }

  /** How long ago this worker was full: 0 if it is full now, null if it never was. */
  get fullMsAgo(): number | null {
    return this.#dispatcher.fullMsAgo
  }

  /** Looks once and starts what is due, as far as there is room. Does not wait for the runs to end: see `whenIdle`. */
  async runOnce(): Promise<PipelineLoopCounts> {
    // A nearly full worker waits a moment, so that one transaction claims for several runs that have ended. One transaction for each
    // of them would cost as much as one for many.
    if (this.#isNearlyFull) await this.#deps.clock.batchDelay()
    const { batchSize } = this.#options
    const wanted = this.#transactions > 1 ? batchSize * this.#transactions : Math.min(batchSize, FIRST_BATCH)
    const room = this.#dispatcher.reserve(wanted)
    this.#isNearlyFull = room < wanted
    this.#whenFreed = room === 0 ? this.#dispatcher.whenFreed() : undefined
    try {
      return await this.#claimDue(room)
    } finally {
      this.#dispatcher.release(room)
    }
  }

  /**
   * Ends the sleep and looks again: something comes due sooner than the last look saw.
   * @param lane @default all lanes
   */
  wake(lane = ''): void {
    // A full worker looks as soon as it has room. A worker that is claiming looks again after the claim.
    if (this.#watch.reset(lane) && !this.#dispatcher.isFull) this.#wake.abort()
  }

  cancel(runId: string): void {
    this.#dispatcher.abort(runId, 'cancel')
  }

  /** Looks for runs that the ledger says this worker holds but the worker does not know, and hands them back. */
  checkInDoubt(): Promise<number> {
    return this.#inDoubt.check()
  }

  whenIdle(): Promise<void> {
    return this.#dispatcher.whenIdle()
  }

  /**
   * Stops claiming for good, gives running runs the grace period to end, and hands the rest back without charging an attempt, so
   * that another worker takes them at once. If the database does not answer, it gives up `HAND_BACK_MS` after the grace period.
   */
  async drain(graceMs: number): Promise<void> {
    const { clock } = this.#deps
    const givenUp = Promise.withResolvers<void>()
    const stopTimers = [
      clock.after(graceMs, () => this.#dispatcher.abortAllFromNowOn('hand_back')),
      clock.after(graceMs + HAND_BACK_MS, () => {
        this.#inDoubt.abandon()
        this.#settleQueue.abandon()
        givenUp.resolve()
      }),
    ]
    const idle = this.stop().then(() => this.#dispatcher.whenIdle())
    await Promise.race([idle.then(() => this.#inDoubt.stop()), givenUp.promise])
    for (const stopTimer of stopTimers) stopTimer()
  }

  protected override async rest({ sleepMs }: PipelineLoopCounts, signal: AbortSignal): Promise<void> {
    if (sleepMs <= 0) return
    const early = AbortSignal.any([signal, this.#wake.signal])
    const freed = this.#whenFreed === undefined ? [] : [this.#whenFreed]
    await Promise.race([this.#deps.clock.sleep(sleepMs, early), ...freed])
    if (this.#wake.signal.aborted) this.#wake = new AbortController()
    else if (this.#watch.sleepMs === sleepMs) this.#watch.slept()
  }

  async #claimDue(room: number): Promise<PipelineLoopCounts> {
    const { workerId } = this.#deps.lease
    if (workerId === undefined || room === 0) return { ...NOTHING, sleepMs: IDLE_PAUSE_MS }
    const { lanes, slotAt } = await this.#watch.findDue()
    if (lanes.length === 0) return { ...NOTHING, sleepMs: this.#watch.sleepMs }
    // The slots of a lane and the waiting runs of a lane each count as one lane here, so they get equal shares. The next pass shares
    // out the room that this one leaves.
    const share = this.#shares.share(lanes, room)
    const ended = await Promise.allSettled([
      ...this.#claimSlots({ ...share, workerId, slotAt }),
      ...this.#claimRuns({ ...share, workerId, slotAt }),
    ])
    const counts = ended.filter((claim) => claim.status === 'fulfilled').map(({ value }) => value)
    const sumOf = (count: (claim: ClaimCounts) => number): number =>
      counts.reduce((sum, claim) => sum + count(claim), 0)
    const claimed = sumOf((claim) => claim.claimed)
    const isHerd = claimed * 2 >= room
    this.#transactions = isHerd ? TRANSACTIONS_OF_A_HERD : 1
    if (isHerd) this.#dispatcher.noteBusy()
    // Thrown at the end: a claim that failed does not hold up the others.
    const failed = ended.find((claim) => claim.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    const [begun, skipped, taken] = [
      sumOf(({ begun }) => begun),
      sumOf(({ skipped }) => skipped),
      sumOf(({ taken }) => taken),
    ]
    return { begun, skipped, taken, sleepMs: 0 }
  }

  #claimSlots({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts>[] {
    const slots = lanes.filter(({ source }) => source === 'slot')
    if (slots.length === 0) return []
    const portions = splitLanes(slots, Math.min(this.#transactions, slots.length * perLane))
    // A single lane goes to all transactions: each gets its part of the room.
    const each = slots.length === 1 ? Math.floor(perLane / portions.length) : perLane
    return portions.map((portion) => this.#begin({ lanes: portion, perLane: each, workerId, slotAt }))
  }

  #claimRuns({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts>[] {
    const runs = lanes.filter(({ source }) => source === 'run')
    return runs.length === 0 ? [] : [this.#take({ lanes: runs, perLane, workerId, slotAt })]
  }

  async #begin({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts> {
    const { events } = this.#deps
    const from = this.#watch.from('slot', lanes.map(nameOf))
    const { generation } = this.#watch
    const batch = await this.#tracked(workerId, async () => {
      const deps = { ...this.#deps, cadences: this.#cadences, retentionMs: this.#options.retentionMs }
      const begun = await beginBatch(deps, { lanes: from, perLane, workerId, slotAt })
      emitBegun(events, begun)
      this.#startAll(begun.begun, workerId, begun.permissions)
      return begun
    })
    this.#watch.claimed(lanes, batch.last, generation)
    // A schedule with more due slots than one portion holds is still due, at a position that the next look would skip.
    if (batch.plans.some((plan) => isStillDue(plan, batch.now))) this.#watch.reset()
    const begun = batch.begun.length
    const lines = batch.plans.flatMap((plan) => plan.lines)
    return { claimed: batch.plans.length, begun, skipped: lines.length - begun, taken: 0 }
  }

  async #take({ lanes, perLane, workerId }: Claims): Promise<ClaimCounts> {
    const from = this.#watch.from('run', lanes.map(nameOf))
    const { generation } = this.#watch
    const { runs, last } = await this.#tracked(workerId, async () => {
      const take = await takeWaiting(this.#deps, { lanes: from, perLane, workerId })
      this.#startAll(take.runs, workerId, null)
      return take
    })
    this.#watch.claimed(lanes, last, generation)
    return { claimed: runs.length, begun: 0, skipped: 0, taken: runs.length }
  }

  /** Keeps a claim in `#claims` until this worker holds its runs. If its commit got no answer, starts the search for its runs. */
  async #tracked<Claimed>(workerId: string, claim: () => Promise<Claimed>): Promise<Claimed> {
    const claiming = claim()
    this.#claims.add(claiming)
    try {
      return await claiming
    } catch (error) {
      this.#inDoubt.claimFailed(workerId, error)
      throw error
    } finally {
      this.#claims.delete(claiming)
    }
  }

  /** Starts the claimed runs, unless the lease was lost during the claim: a rescuer is then about to find them (I12). */
  #startAll(runs: readonly HeldRun[], workerId: string, permissions: Permissions | null): void {
    if (this.#deps.lease.workerId !== workerId) return
    for (const run of runs) this.#dispatcher.start(run, permissions)
  }
}

function nameOf({ lane }: DueLane): string {
  return lane
}
