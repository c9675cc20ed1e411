import type { AuthorizationPort } from '../authorization.ts'
import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Part } from '../failure-record.ts'
import type { Lease } from '../lease.ts'
import { Service } from '../service.ts'
import type { LaneDue } from '../store/agenda.ts'
import type { Db } from '../store/database.ts'
import type { Rights } from '../store/rights.ts'
import type { Take } from '../store/take.ts'
import type { TakenRun } from '../store/taken-run.ts'
import type { Target } from '../target.ts'
import { AgendaWatch } from './agenda-watch.ts'
import type { AbortReason } from './attempt.ts'
import { beginBatch, type BegunBatch } from './begin-batch.ts'
import { isStillDue } from './begin-plan.ts'
import { Dispatcher } from './dispatcher.ts'
import { lanesOf, RoomShares, splitLanes } from './lanes.ts'
import { RightsDesk } from './rights-desk.ts'
import { Settler } from './settler.ts'
import { SlotBook } from './slot-book.ts'
import { Strays } from './strays.ts'
import { takeBatch } from './take-batch.ts'

export interface KeeperDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
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
  /** Waiting runs that were taken for their next attempt. */
  readonly taken: number
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
const FAILURE_PAUSE_MS = 250
/** After a drain's grace, for writing what was handed back. What cannot be written by then is left to a rescuer. */
const HAND_BACK_MS = 4000

/** What one claim came to. */
interface ClaimCounts {
  /** Schedules that were locked, or runs that were taken. */
  readonly claimed: number
  readonly begun: number
  readonly skipped: number
  readonly taken: number
}

const NOTHING = { begun: 0, skipped: 0, taken: 0 }

/** What one turn of the loop claims, and of how much. */
interface Claims {
  readonly lanes: readonly LaneDue[]
  readonly perLane: number
  readonly workerId: string
  readonly slotAt: number | null
}

/**
 * The loop in every worker: look at the agenda, sleep to the next slot or waiting run by Postgres' clock, claim, begin or take,
 * dispatch, settle. No leader, no election: row locks share the work, and only the database says what is due (I10).
 */
export class Keeper extends Service<KeeperCounts> {
  override readonly name = 'keeper'
  readonly #deps: KeeperDeps
  readonly #options: Required<KeeperOptions>
  readonly #watch: AgendaWatch
  readonly #shares = new RoomShares()
  readonly #book = new SlotBook()
  readonly #dispatcher: Dispatcher
  readonly #settler: Settler
  readonly #strays: Strays
  /** Each fails by itself; the keeper goes on. */
  readonly parts: readonly Part[]
  #isCramped = false
  /** How many batches begin at a time: with a herd at hand, while one is decided another one is written. */
  #beginners = 1
  /** Taken when there was no room: what is freed before the rest begins must not be slept over. */
  #whenRoomAgain: Promise<void> | undefined
  #wake = new AbortController()

  constructor(deps: KeeperDeps, options: KeeperOptions) {
    super(deps, { firstMs: FAILURE_PAUSE_MS })
    this.#deps = deps
    this.#options = { concurrency: CONCURRENCY_DEFAULT, batchSize: BATCH_SIZE_DEFAULT, ...options }
    this.#watch = new AgendaWatch({ ...deps, lanes: lanesOf([...deps.targets.keys()]) })
    this.#settler = new Settler(deps)
    const { clock, events, targets } = deps
    const { concurrency } = this.#options
    const rights = new RightsDesk(deps)
    this.#dispatcher = new Dispatcher({
      clock,
      events,
      targets,
      concurrency,
      rights,
      settler: this.#settler,
      book: this.#book,
    })
    this.#strays = new Strays({ ...deps, held: () => this.#dispatcher.held })
    this.parts = [this.#settler, rights, this.#dispatcher, this.#strays]
    deps.lease.onLost(() => this.#dispatcher.abortAll('lease_lost'))
  }

  get inFlight(): number {
    return this.#dispatcher.inFlight
  }

  /** How long ago this worker had no room for another run: 0 if it has none now, null if it always had some. */
  get fullMsAgo(): number | null {
    return this.#dispatcher.fullMsAgo
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
   * Looks again now: something may be due sooner than was thought.
   * @param lane where; @default anywhere
   */
  wake(lane = ''): void {
    // A full worker looks as soon as it has room. One whose room is only set aside for a claim looks again after it.
    if (this.#watch.forget(lane) && !this.#dispatcher.isFull) this.#wake.abort()
  }

  cancel(runId: string): void {
    this.#dispatcher.abort(runId, 'cancel')
  }

  /** @returns how many runs the ledger says this worker holds, and it does not know of; they are handed back */
  lookForStrays(): Promise<number> {
    return this.#strays.look()
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
    const givenUp = Promise.withResolvers<void>()
    const stopTimers = [
      clock.after(graceMs, () => this.#dispatcher.abortAllFromNowOn('hand_back' satisfies AbortReason)),
      clock.after(graceMs + HAND_BACK_MS, () => {
        this.#strays.abandon()
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
    if (workerId === undefined || room === 0) return { ...NOTHING, restMs: IDLE_PAUSE_MS }
    const { lanes, slotAt } = await this.#watch.findDue()
    if (lanes.length === 0) return { ...NOTHING, restMs: this.#watch.restMs }
    // Slots and waiting runs of a lane share its room half and half. What one does not use, the other takes in the next turn.
    const share = this.#shares.share(lanes, room)
    const ended = await Promise.allSettled([
      ...this.#claimSlots({ ...share, workerId, slotAt }),
      ...this.#claimRuns({ ...share, workerId, slotAt }),
    ])
    const counts = ended.filter((claim) => claim.status === 'fulfilled').map(({ value }) => value)
    const sumOf = (count: (claim: ClaimCounts) => number): number =>
      counts.reduce((sum, claim) => sum + count(claim), 0)
    const claimed = sumOf((claim) => claim.claimed)
    this.#beginners = claimed * 2 >= room ? BEGINNERS_OF_A_HERD : 1
    if (claimed * 2 >= room) this.#dispatcher.noteBusy()
    // What one claim could not begin does not keep back what the others did.
    const failed = ended.find((claim) => claim.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    const [begun, skipped, taken] = [
      sumOf(({ begun }) => begun),
      sumOf(({ skipped }) => skipped),
      sumOf(({ taken }) => taken),
    ]
    return { begun, skipped, taken, restMs: 0 }
  }

  #claimSlots({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts>[] {
    const slots = lanes.filter(({ source }) => source === 'slot')
    if (slots.length === 0) return []
    const portions = splitLanes(slots, Math.min(this.#beginners, slots.length * perLane))
    // One lane goes to all who begin: each gets its part of the room.
    const each = slots.length === 1 ? Math.floor(perLane / portions.length) : perLane
    return portions.map((portion) => this.#begin({ lanes: portion, perLane: each, workerId, slotAt }))
  }

  #claimRuns({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts>[] {
    const runs = lanes.filter(({ source }) => source === 'run')
    return runs.length === 0 ? [] : [this.#take({ lanes: runs, perLane, workerId, slotAt })]
  }

  async #begin({ lanes, perLane, workerId, slotAt }: Claims): Promise<ClaimCounts> {
    const { retentionMs } = this.#options
    const from = this.#watch.from('slot', lanes.map(nameOf))
    const { generation } = this.#watch
    const batch = await this.#strays.watch(workerId, async () => {
      const deps = { ...this.#deps, book: this.#book, retentionMs }
      const begun = await beginBatch(deps, { lanes: from, perLane, workerId, slotAt })
      this.#tell(begun)
      this.#startAll(begun.begun, workerId, begun.rights)
      return begun
    })
    this.#watch.claimed(lanes, batch.last, generation)
    // What is written in portions comes to lie before others that were claimed.
    if (batch.plans.some((plan) => isStillDue(plan, batch.now))) this.#watch.forget()
    const begun = batch.begun.length
    const lines = batch.plans.reduce((sum, { runs }) => sum + runs.length, 0)
    return { claimed: batch.plans.length, begun, skipped: lines - begun, taken: 0 }
  }

  async #take({ lanes, perLane, workerId }: Claims): Promise<ClaimCounts> {
    const from = this.#watch.from('run', lanes.map(nameOf))
    const { generation } = this.#watch
    const { runs, last } = await this.#strays.watch(workerId, async (): Promise<Take> => {
      const take = await takeBatch(this.#deps, { lanes: from, perLane, workerId })
      this.#startAll(take.runs, workerId, null)
      return take
    })
    this.#watch.claimed(lanes, last, generation)
    return { claimed: runs.length, begun: 0, skipped: 0, taken: runs.length }
  }

  /**
   * If the lease was lost while they were being taken, who held them was told to stop before they came: nobody would stop
   * them now, and a rescuer is about to find them (I12).
   */
  #startAll(runs: readonly TakenRun[], workerId: string, rights: Rights | null): void {
    if (this.#deps.lease.workerId !== workerId) return
    for (const run of runs) this.#dispatcher.start(run, rights)
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

function nameOf({ lane }: LaneDue): string {
  return lane
}
