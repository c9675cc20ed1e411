import { messageOf, type RetryPolicy } from '@carillon/api'

import type { Permissions } from '../access/grants.ts'
import type { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, FORGET_AFTER_MS, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { NO_RETRY } from '../policy/retry.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Callback, DrainRule, Target, TranscriptEntry } from '../ports/target.ts'
import { attemptRun, malformed, type AbortReason } from './attempt.ts'
import type { PermissionChecker } from './permissions.ts'
import type { SettleQueue } from './settle-queue.ts'
import { settlementOf, type Ending } from './settlement.ts'
import type { Settlement } from './store/settle.ts'
import type { AttemptTranscript, Transcripts } from './transcript.ts'

export interface DispatcherDeps {
  readonly clock: Clock
  readonly events: Events
  readonly settleQueue: SettleQueue
  readonly cadences: CadenceCache
  readonly targets: ReadonlyMap<string, Target>
  readonly checker: PermissionChecker
  readonly transcripts: Transcripts
  /** Where the called side completes the attempt of a run. */
  readonly callback: (run: HeldRun) => Callback
  /** How many runs this worker holds at most. */
  readonly concurrency: number
}

interface InFlight {
  readonly runId: string
  readonly token: number
  readonly targetKind: string
  readonly abort: AbortController
  readonly done: Promise<void>
}

/** Holds runs from their start until they are settled: dispatch, then settle. Never more than `concurrency` at a time. */
export class Dispatcher implements MonitoredPart {
  readonly name = 'dispatcher'
  readonly #deps: DispatcherDeps
  /** A success of one run says nothing about another, so a failure counts as over when it does not recur for a while. */
  readonly #failures: FailureRecord
  /**
   * One entry per run and token. A run that this worker lost and took again has two entries, until the settlement of the first one is
   * fenced.
   */
  readonly #inFlight = new Set<InFlight>()
  #reserved = 0
  /** When runs last filled this worker, or more was due than it claims at a time; undefined: never. By the monotonic clock. */
  #lastFullAtMs: number | undefined
  #abortReason: AbortReason | undefined
  /** Exists only while a caller waits for room. */
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

  /** True if running runs fill this worker. Reserved room does not count. */
  get isFull(): boolean {
    return this.#inFlight.size >= this.#deps.concurrency
  }

  /** How long ago this worker was full: 0 if it is full now, null if it never was. */
  get fullMsAgo(): number | null {
    if (this.isFull) return 0
    return this.#lastFullAtMs === undefined ? null : this.#deps.clock.monotonicMs() - this.#lastFullAtMs
  }

  /** Records that more is due than this worker claims at a time. */
  noteBusy(): void {
    this.#lastFullAtMs = this.#deps.clock.monotonicMs()
  }

  /** Reserves room for up to `wanted` runs that are about to be claimed. Returns how much it reserved; the caller releases as much. */
  reserve(wanted: number): number {
    const reserved = Math.min(wanted, this.room)
    this.#reserved += reserved
    return reserved
  }

  /** Releases reserved room once the claimed runs have been started. */
  release(reserved: number): void {
    if (reserved === 0) return
    this.#reserved -= reserved
    this.#notifyFreed()
  }

  /** Resolves when a run ends or reserved room is released. */
  whenFreed(): Promise<void> {
    this.#freed ??= Promise.withResolvers()
    return this.#freed.promise
  }

  /** Resolves when no run is held and no room is reserved. */
  async whenIdle(): Promise<void> {
    while (this.#inFlight.size + this.#reserved > 0) {
      await (this.#inFlight.size > 0 ? Promise.all([...this.#inFlight].map(({ done }) => done)) : this.whenFreed())
    }
  }

  /**
   * @param permissions as they were when the run began; null: the permission check reads them before the target is called
   * @param ending how the attempt ended already, because its kind did not admit it: the target is not called
   */
  start(run: HeldRun, permissions: Permissions | null, ending?: Ending): void {
    const abort = new AbortController()
    // Set when a drain's grace period is over: the run is aborted before its target is called, so it is handed back untried.
    if (this.#abortReason !== undefined) abort.abort(this.#abortReason)
    const done = this.#hold(run, abort, permissions, ending).finally(() => {
      if (this.isFull) this.#lastFullAtMs = this.#deps.clock.monotonicMs()
      this.#inFlight.delete(hold)
      this.#notifyFreed()
    })
    const { runId, token, targetKind } = run
    const hold = { runId, token, targetKind, abort, done }
    this.#inFlight.add(hold)
    this.#failures.reportRejection(done)
  }

  /** The runs that this worker holds, from their start until they are settled. */
  get held(): Iterable<{ readonly runId: string; readonly token: number }> {
    return this.#inFlight
  }

  /** Aborts the attempt at a run, if this worker holds the run. */
  abort(runId: string, reason: AbortReason): void {
    for (const held of this.#inFlight) if (held.runId === runId) held.abort.abort(reason)
  }

  abortAll(reason: AbortReason): void {
    for (const { abort } of this.#inFlight) abort.abort(reason)
  }

  /**
   * Hands back runs once the grace period of the worker is over, or sooner where their kind asks for less time. Runs of kinds that wait go
   * on. Runs of claims that are still in progress are handed back untried.
   * @returns a function that stops the timers
   */
  handBackAfter(graceMs: number): () => void {
    const { clock } = this.#deps
    const stopTimers = [
      ...this.#inFlight.values().flatMap(({ targetKind, abort }) => {
        const drain = this.#drainRule(targetKind)
        if (drain?.kind !== 'hand_back' || drain.graceMs >= graceMs) return []
        return [clock.after(drain.graceMs, () => abort.abort(HAND_BACK))]
      }),
      clock.after(graceMs, () => {
        this.#abortReason = HAND_BACK
        for (const { targetKind, abort } of this.#inFlight) {
          if (this.#drainRule(targetKind)?.kind !== 'wait') abort.abort(HAND_BACK)
        }
      }),
    ]
    return () => {
      for (const stopTimer of stopTimers) stopTimer()
    }
  }

  #drainRule(targetKind: string): DrainRule | undefined {
    return this.#deps.targets.get(targetKind)?.drain
  }

  #notifyFreed(): void {
    this.#freed?.resolve()
    this.#freed = undefined
  }

  /**
   * Attempts a run and settles it. If Carillon's own code throws, the attempt is settled as failed and the run is retried. Otherwise a
   * living worker would hold the run forever, and no rescuer would find it.
   */
  async #hold(
    run: HeldRun,
    abort: AbortController,
    permissions: Permissions | null,
    ending: Ending | undefined,
  ): Promise<void> {
    try {
      await (ending === undefined ? this.#attempt(run, abort, permissions) : this.#settle(run, ending))
    } catch (error) {
      this.#failures.failed(error)
      const failed = { code: 'dispatch_failed', message: messageOf(error) }
      const ending = { kind: 'failed', error: failed, retryable: true } as const
      await this.#deps.settleQueue.settle(run, settlementOf(run, ending, { retry: RETRY_SOON }))
    }
  }

  async #attempt(run: HeldRun, abort: AbortController, known: Permissions | null): Promise<void> {
    const { clock, targets, checker, transcripts } = this.#deps
    // Most runs record nothing: they get no transcript.
    let transcript: AttemptTranscript | undefined
    let isOver = false
    const record = (entry: TranscriptEntry): void => {
      if (!isOver) (transcript ??= transcripts.open(run)).record(entry)
    }
    const ending = await attemptRun(run, targets.get(run.targetKind), {
      clock,
      abort,
      checker,
      known,
      record,
      callback: () => this.#deps.callback(run),
    })
    // A target may go on after its time limit. What it records then would follow the settlement.
    isOver = true
    if (transcript !== undefined) await transcript.close()
    if (ending !== null) await this.#settle(run, ending)
  }

  async #settle(run: HeldRun, ending: Ending): Promise<void> {
    await this.#deps.settleQueue.settle(run, readableSettlementOf(run, ending, this.#policyOf(run)))
  }

  /** Null if the stored policy can no longer be read: the run then gets no second attempt. */
  #policyOf(run: HeldRun): SchedulePolicy | null {
    try {
      return this.#deps.cadences.policy(run.policy)
    } catch {
      return null
    }
  }
}

const HAND_BACK: AbortReason = 'hand_back'

/** For a run that failed because of an error in Carillon itself. Its own policy does not apply. */
const RETRY_SOON: RetryPolicy = { maxAttempts: 3, baseSeconds: 10, capSeconds: 60 }

/** A target may return a result that cannot be written as JSON. Then the attempt is malformed, and the ledger says so. */
function readableSettlementOf(run: HeldRun, ending: Ending, policy: SchedulePolicy | null): Settlement {
  const options = { retry: policy?.retry ?? NO_RETRY, mayFree: policy === null || mayFree(policy) }
  try {
    return settlementOf(run, ending, options)
  } catch (error) {
    return settlementOf(run, malformed('unreadable_outcome', messageOf(error)), options)
  }
}

/** Only under these policies can another run of the schedule wait for this one to end. */
function mayFree({ overlap }: SchedulePolicy): boolean {
  return overlap === 'queue' || overlap === 'replace'
}
