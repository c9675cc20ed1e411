import type { Permissions } from '../access/grants.ts'
import type { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { Lease } from '../kernel/lease.ts'
import { Service } from '../kernel/service.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { lanesOf } from '../policy/lane-names.ts'
import { endingOfAdmission } from './admission.ts'
import { isStillDue } from './begin-plan.ts'
import { beginBatch, emitBegun } from './begin.ts'
import type { Dispatcher } from './dispatcher.ts'
import { DueWatch, RoomShares, splitLanes } from './due-watch.ts'
import type { Hooks } from './hooks.ts'
import type { InDoubtCommits } from './in-doubt-commits.ts'
import type { Ending } from './settlement.ts'
import type { DueLane } from './store/look.ts'
import { takeAdmitted, takeWaiting, type Take } from './store/take.ts'

export interface PipelineLoopDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  readonly hooks: Hooks
  readonly cadences: CadenceCache
  readonly dispatcher: Dispatcher
  readonly inDoubt: InDoubtCommits
  /** Claims in progress: added before the transaction starts, removed once this worker holds the runs. */
  readonly claims: Set<Promise<unknown>>
}

export interface PipelineLoopOptions {
  /** The kinds whose slots and runs it claims: one kind with hooks, or all those without. */
  readonly kinds: readonly string[]
  /** The kind, if it has hooks; else null. */
  readonly hookedKind: string | null
  /** How many schedules one transaction begins at most. @default `BATCH_SIZE_DEFAULT` */
  readonly batchSize?: number | undefined
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
 * A loop in every worker: look at what comes due, sleep until then by Postgres' clock, claim, begin or take, dispatch, settle.
 * There is no leader and no election: row locks share the work among workers, and only Postgres decides what is due (I10). Each kind with
 * hooks has a loop of its own, so that a slow hook delays its own kind only.
 */
export class PipelineLoop extends Service<PipelineLoopCounts> {
  override readonly name: string
  readonly #deps: PipelineLoopDeps
  readonly #options: PipelineLoopOptions
  readonly #batchSize: number
  readonly #watch: DueWatch
  readonly #shares = new RoomShares()
  /** True if the last pass had less room than it wanted. */
  #isNearlyFull = false
  /** How many transactions begin slots at the same time. */
  #transactions = 1
  /** Resolves when room becomes free. Set before the sleep if a pass had no room, so that a run that ends in between is not missed. */
  #whenFreed: Promise<void> | undefined
  #wake = new AbortController()

  constructor(deps: PipelineLoopDeps, options: PipelineLoopOptions) {
    super(deps, { firstMs: FAILURE_PAUSE_MS })
    const { hookedKind, kinds, batchSize = BATCH_SIZE_DEFAULT } = options
    this.name = hookedKind === null ? 'pipeline' : `pipeline of ${hookedKind}`
    this.#deps = deps
    this.#options = options
    this.#batchSize = batchSize
    this.#watch = new DueWatch({ ...deps, lanes: lanesOf(kinds) })
  }

  /** Looks once and starts what is due, as far as there is room. Does not wait for the runs to end: see `whenIdle`. */
  async runOnce(): Promise<PipelineLoopCounts> {
    // A nearly full worker waits a moment, so that one transaction claims for several runs that have ended. One transaction for each
    // of them would cost as much as one for many.
    const { clock, dispatcher } = this.#deps
    if (this.#isNearlyFull) await clock.batchDelay()
    const batchSize = this.#batchSize
    const wanted = this.#transactions > 1 ? batchSize * this.#transactions : Math.min(batchSize, FIRST_BATCH)
    const room = dispatcher.reserve(wanted)
    this.#isNearlyFull = room < wanted
    this.#whenFreed = room === 0 ? dispatcher.whenFreed() : undefined
    try {
      return await this.#claimDue(room)
    } finally {
      dispatcher.release(room)
    }
  }

  /**
   * Ends the sleep and looks again: something comes due sooner than the last look saw.
   * @param lane @default all lanes
   */
  wake(lane = ''): void {
    // A full worker looks as soon as it has room. A worker that is claiming looks again after the claim.
    if (this.#watch.reset(lane) && !this.#deps.dispatcher.isFull) this.#wake.abort()
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
    if (isHerd) this.#deps.dispatcher.noteBusy()
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
      const { retentionMs, hookedKind } = this.#options
      const deps = { ...this.#deps, retentionMs }
      const begun = await beginBatch(deps, { lanes: from, perLane, workerId, slotAt, hookedKind })
      emitBegun(events, begun)
      this.#startAll(begun.begun, { workerId, permissions: begun.permissions, endings: begun.endings })
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
      const take = await this.#takeFrom({ lanes: from, perLane, workerId })
      this.#startAll(take.runs, { workerId, permissions: null, endings: take.endings })
      return take
    })
    this.#watch.claimed(lanes, last, generation)
    return { claimed: runs.length, begun: 0, skipped: 0, taken: runs.length }
  }

  async #takeFrom(p: Parameters<typeof takeWaiting>[1]): Promise<Take & Pick<Starting, 'endings'>> {
    const { hooks } = this.#deps
    const { hookedKind } = this.#options
    if (hookedKind === null) return { ...(await takeWaiting(this.#deps, p)), endings: NO_ENDINGS }
    const take = await takeAdmitted(this.#deps, p, (tx, runs) => hooks.admit(tx, hookedKind, runs))
    const endings = take.runs.flatMap(({ runId }, index) => {
      const admission = take.admission?.[index]
      const ending = admission && endingOfAdmission(admission)
      return ending === undefined ? [] : [[runId, ending] as const]
    })
    return { ...take, endings: new Map(endings) }
  }

  /** Keeps a claim in `claims` until this worker holds its runs. If its commit got no answer, starts the search for its runs. */
  async #tracked<Claimed>(workerId: string, claim: () => Promise<Claimed>): Promise<Claimed> {
    const claiming = claim()
    const { claims, inDoubt } = this.#deps
    claims.add(claiming)
    try {
      return await claiming
    } catch (error) {
      inDoubt.claimFailed(workerId, error)
      throw error
    } finally {
      claims.delete(claiming)
    }
  }

  /** Starts the claimed runs, unless the lease was lost during the claim: a rescuer is then about to find them (I12). */
  #startAll(runs: readonly HeldRun[], { workerId, permissions, endings }: Starting): void {
    const { lease, dispatcher } = this.#deps
    if (lease.workerId !== workerId) return
    for (const run of runs) dispatcher.start(run, permissions, endings.get(run.runId))
  }
}

/** How claimed runs start. */
interface Starting {
  /** The lease that they were claimed under. */
  readonly workerId: string
  readonly permissions: Permissions | null
  /** How the attempts of some of them ended already, by run id, because their kind did not admit them. */
  readonly endings: ReadonlyMap<string, Ending>
}

const NO_ENDINGS: Starting['endings'] = new Map()

function nameOf({ lane }: DueLane): string {
  return lane
}
