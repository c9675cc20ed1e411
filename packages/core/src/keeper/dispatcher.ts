import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { FailureRecord, FORGET_AFTER_MS, type Part, type ServiceFailure } from '../failure-record.ts'
import { NO_RETRY, type RetryPolicy } from '../policy/retry.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { settlementOf, type Ending } from '../settlement.ts'
import type { Rights } from '../store/rights.ts'
import type { Settlement } from '../store/settle.ts'
import type { TakenRun } from '../store/taken-run.ts'
import type { Target } from '../target.ts'
import { attemptRun, malformed, messageOf, type AbortReason } from './attempt.ts'
import type { RightsDesk } from './rights-desk.ts'
import type { Settler } from './settler.ts'
import type { SlotBook } from './slot-book.ts'

export interface DispatcherDeps {
  readonly clock: Clock
  readonly events: Events
  readonly settler: Settler
  readonly book: SlotBook
  readonly targets: ReadonlyMap<string, Target>
  readonly rights: RightsDesk
  /** How many runs this worker holds at most. */
  readonly concurrency: number
}

interface InFlight {
  readonly runId: string
  readonly token: number
  readonly abort: AbortController
  readonly done: Promise<void>
}

/** Sees taken runs through: dispatch, then settle. Holds no more than it was told to. */
export class Dispatcher implements Part {
  readonly name = 'dispatcher'
  readonly #deps: DispatcherDeps
  /** A run that goes well says nothing about the one that failed: a failure is over when it does not recur. */
  readonly #failures: FailureRecord
  /** By hold, not by run: a run that was lost and taken again is held twice until its first hold has been fenced. */
  readonly #inFlight = new Set<InFlight>()
  #reserved = 0
  /** When runs last took up all the room, or this worker was busy claiming; undefined: never yet. */
  #lastFullAtMs: number | undefined
  #abortReason: AbortReason | undefined
  /** Only while somebody waits for it. */
  #freed: PromiseWithResolvers<void> | undefined

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.#failures = new FailureRecord(deps, this, FORGET_AFTER_MS)
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  /** For how many more runs there is room. */
  get room(): number {
    return Math.max(0, this.#deps.concurrency - this.#inFlight.size - this.#reserved)
  }

  /** Whether runs take up all the room, and not merely claims that may bring none. */
  get isFull(): boolean {
    return this.#inFlight.size >= this.#deps.concurrency
  }

  /** How long ago this worker had all it can do: 0 if it has now, null if it never had. */
  get fullMsAgo(): number | null {
    if (this.isFull) return 0
    return this.#lastFullAtMs === undefined ? null : this.#deps.clock.monotonicMs() - this.#lastFullAtMs
  }

  /** Says that there is more to do than this worker gets done, whether or not runs take up all its room. */
  noteBusy(): void {
    this.#lastFullAtMs = this.#deps.clock.monotonicMs()
  }

  /** Sets room aside for runs that are about to be taken, and says for how many there is some. To be released. */
  reserve(wanted: number): number {
    const reserved = Math.min(wanted, this.room)
    this.#reserved += reserved
    return reserved
  }

  /** Gives back what was set aside, once the runs it was for have been started. */
  release(reserved: number): void {
    if (reserved === 0) return
    this.#reserved -= reserved
    this.#tellFreed()
  }

  /** Resolves when a run is over and there may be room again. */
  whenFreed(): Promise<void> {
    this.#freed ??= Promise.withResolvers()
    return this.#freed.promise
  }

  /** Resolves when nothing is under way, nor about to be. */
  async whenIdle(): Promise<void> {
    while (this.#inFlight.size + this.#reserved > 0) {
      await (this.#inFlight.size > 0 ? Promise.all([...this.#inFlight].map(({ done }) => done)) : this.whenFreed())
    }
  }

  /** @param rights as they were found when the run had begun; null: to be looked up */
  start(run: TakenRun, rights: Rights | null): void {
    const abort = new AbortController()
    // Before its target is called: what is handed back was not.
    if (this.#abortReason !== undefined) abort.abort(this.#abortReason)
    const done = this.#hold(run, abort, rights).finally(() => {
      if (this.isFull) this.#lastFullAtMs = this.#deps.clock.monotonicMs()
      this.#inFlight.delete(hold)
      this.#tellFreed()
    })
    const hold = { runId: run.runId, token: run.token, abort, done }
    this.#inFlight.add(hold)
    this.#failures.own(done)
  }

  /** What is here, from its start until it is settled, with the fence under which it was taken. */
  get held(): Iterable<{ readonly runId: string; readonly token: number }> {
    return this.#inFlight
  }

  /** Fires the signal of a run, if it is here. */
  abort(runId: string, reason: AbortReason): void {
    for (const held of this.#inFlight) if (held.runId === runId) held.abort.abort(reason)
  }

  abortAll(reason: AbortReason): void {
    for (const { abort } of this.#inFlight) abort.abort(reason)
  }

  /** Also what a claim that is under way will still bring. */
  abortAllFromNowOn(reason: AbortReason): void {
    this.#abortReason = reason
    this.abortAll(reason)
  }

  #tellFreed(): void {
    this.#freed?.resolve()
    this.#freed = undefined
  }

  /** Should this code itself fail, the run is tried again: held and forgotten by a living worker, it would be found by nobody. */
  async #hold(run: TakenRun, abort: AbortController, rights: Rights | null): Promise<void> {
    try {
      await this.#seeThrough(run, abort, rights)
    } catch (error) {
      this.#failures.failed(error)
      const failed = { code: 'dispatch_failed', message: messageOf(error) }
      const settlement = settlementOf(run, RETRY_SOON, { kind: 'failed', error: failed, retryable: true })
      await this.#deps.settler.settle(run, { settlement, mayFree: true })
    }
  }

  async #seeThrough(run: TakenRun, abort: AbortController, known: Rights | null): Promise<void> {
    const { clock, settler, book, targets, rights } = this.#deps
    const policy = this.#policyOf(run, book)
    const ending = await attemptRun(run, targets.get(run.targetKind), { clock, abort, rights, known })
    if (ending === null) return
    const settlement = readableSettlementOf(run, policy?.retry ?? NO_RETRY, ending)
    await settler.settle(run, { settlement, mayFree: policy === null || mayFree(policy) })
  }

  /** Null if it can no longer be read: the run then gets no second attempt. */
  #policyOf(run: TakenRun, book: SlotBook): SchedulePolicy | null {
    try {
      return book.policy(run.policy)
    } catch {
      return null
    }
  }
}

/** For a run that failed by a fault of ours, whatever its own policy says. */
const RETRY_SOON: RetryPolicy = { maxAttempts: 3, baseSeconds: 10, capSeconds: 60 }

/** What a target returned may not be JSON, whatever its type says: then that is what is written. */
function readableSettlementOf(run: TakenRun, retry: RetryPolicy, ending: Ending): Settlement {
  try {
    return settlementOf(run, retry, ending)
  } catch (error) {
    return settlementOf(run, retry, malformed('unreadable_outcome', messageOf(error)))
  }
}

/** Only under these may another run of the schedule be waiting for this one's end. */
function mayFree({ overlap }: SchedulePolicy): boolean {
  return overlap === 'queue' || overlap === 'replace'
}
