import type { Db } from '../db/database.ts'
import { isConnectionInDoubt } from '../db/sqlstate.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, pauseAfter, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import type { Lease } from '../kernel/lease.ts'
import { PeriodicService, type ServiceDeps } from '../kernel/service.ts'
import type { RunFence } from '../ledger/held-run.ts'
import { NO_RETRY } from '../policy/retry.ts'
import type { Hooks } from './hooks.ts'
import { batchesOf, settleAll, settleApart } from './settle.ts'
import { emitSettled, settlementOf } from './settlement.ts'
import { areEarlierOver, findRunningRuns, newTransactionId } from './store/in-doubt-runs.ts'

export interface InDoubtCommitsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  readonly hooks: Hooks
  /** The runs that this worker knows it holds, with their fences. */
  readonly held: () => Iterable<HeldFence>
  /** Claims in progress: added before the transaction starts, removed once this worker holds the runs. */
  readonly claims: ReadonlySet<Promise<unknown>>
}

/** What tells one hold of a run from another: a run that is taken again gets another token. */
type HeldFence = Pick<RunFence, 'runId' | 'token'>

/** A reason to search: a claim whose commit got no answer, or a check that found an unknown run. */
interface Doubt {
  readonly workerId: string
  /** Higher than the id of any transaction in doubt; undefined until Postgres has given one. */
  laterTransactionId: string | undefined
}

/** The pause before the next search if one failed or a transaction in doubt is still open. Doubles with each failure in a row. */
const SEARCH_AGAIN_MS = 500
/** How many more runs than the worker holds one search reads at most. The next search finds the rest. */
const HAND_BACK_MAX = 1000

/**
 * Finds runs that the ledger says this worker holds but the worker does not know: the connection broke before the answer to the
 * commit arrived. The worker's lease is alive, so no rescuer finds them. The worker hands them back. Their targets were not called,
 * so no attempt is charged, and any worker with room takes them at once.
 *
 * The worker searches after a claim that failed in this way. It also checks once a minute (`InDoubtCheck`), because a restored
 * backup or a statement by hand can write a living worker's id into a run.
 */
export class InDoubtCommits implements MonitoredPart {
  readonly name = 'in-doubt commits'
  readonly #deps: InDoubtCommitsDeps
  readonly #failures: FailureRecord
  readonly #stopping = new AbortController()
  #isAbandoned = false
  #doubt: Doubt | undefined
  #search: Promise<void> | undefined

  constructor(deps: InDoubtCommitsDeps) {
    this.#deps = deps
    this.#failures = new FailureRecord(deps, this)
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  /** Starts a search if the error leaves open whether the claim was committed. */
  claimFailed(workerId: string, error: unknown): void {
    if (isConnectionInDoubt(error)) this.#searchFor({ workerId, laterTransactionId: undefined })
  }

  /**
   * Compares the ledger with what this worker holds, and starts a search if they differ. A run counts as known if the worker
   * holds it before or after the query, or is claiming it.
   * @returns how many unknown runs were found
   */
  async check(): Promise<number> {
    const { lease } = this.#deps
    const { workerId } = lease
    if (workerId === undefined || this.#stopping.signal.aborted) return 0
    const heldBefore = this.#heldNames()
    const { running } = await this.#findRunning(workerId)
    const heldAfter = this.#heldNames()
    const unknown = running.map(nameOf).filter((name) => !heldBefore.has(name) && !heldAfter.has(name))
    if (unknown.length === 0 || lease.workerId !== workerId) return 0
    this.#searchFor({ workerId, laterTransactionId: undefined })
    return unknown.length
  }

  /** Searches once more if a doubt is left. After that, a rescuer finds what is left when the lease has run out. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#search
  }

  /**
   * Hands nothing back any more. The worker no longer holds a run whose settlement was given up, so the run would look unknown here,
   * although its target was called.
   */
  abandon(): void {
    this.#isAbandoned = true
    this.#stopping.abort()
  }

  #searchFor(doubt: Doubt): void {
    // The new doubt covers earlier ones: its transaction id will be higher.
    this.#doubt = doubt
    if (this.#search !== undefined) return
    this.#search = this.#searchUntilSure()
    this.#failures.reportRejection(this.#search)
  }

  async #searchUntilSure(): Promise<void> {
    const { signal } = this.#stopping
    for (let doubt = this.#doubt; doubt !== undefined; doubt = this.#doubt) {
      let pauseMs = SEARCH_AGAIN_MS
      try {
        const isSure = await this.#handBackUnknown(doubt)
        this.#failures.succeeded()
        if (isSure && this.#doubt === doubt) this.#doubt = undefined
      } catch (error) {
        pauseMs = pauseAfter(this.#failures.failed(error), { firstMs: SEARCH_AGAIN_MS })
      }
      if (signal.aborted) break
      if (this.#doubt === doubt) await this.#deps.clock.sleep(pauseMs, signal)
    }
    // No await may stand between the end of the loop and this line: a doubt that came in between would start no search.
    this.#search = undefined
  }

  /**
   * @returns false if another search is needed: a transaction in doubt may still be open, because Postgres has not noticed yet that
   * the connection is gone; or there were more runs than one search reads
   */
  async #handBackUnknown(doubt: Doubt): Promise<boolean> {
    const { db } = this.#deps
    if (this.#isLeaseLost(doubt)) return true
    doubt.laterTransactionId ??= await newTransactionId(db)
    const areOver = await areEarlierOver(db, { transactionId: doubt.laterTransactionId })
    const { running, areAll } = await this.#findRunning(doubt.workerId)
    // After a lost lease the worker holds nothing, so every run would look unknown.
    if (this.#isLeaseLost(doubt) || this.#isAbandoned) return true
    const held = this.#heldNames()
    // If a run was settled since the query, the fence rejects its hand-back (I12).
    await this.#handBack(running.filter((run) => !held.has(nameOf(run))))
    return areOver && areAll
  }

  /** The runs of a worker in the ledger. When this resolves, the worker holds every one of them that it claimed itself. */
  async #findRunning(workerId: string): Promise<{ readonly running: readonly RunFence[]; readonly areAll: boolean }> {
    // The limit exceeds what the worker holds, so an unknown run is always among the rows.
    const limit = this.#heldNames().size + HAND_BACK_MAX
    const running = await findRunningRuns(this.#deps.db, { workerId, limit })
    // The query may see the commit of a claim whose runs the worker does not hold yet.
    await Promise.allSettled(this.#deps.claims)
    return { running, areAll: running.length < limit }
  }

  #heldNames(): ReadonlySet<string> {
    return new Set([...this.#deps.held()].map(nameOf))
  }

  /** True if the worker no longer has the lease that the doubt is about: a rescuer then finds the runs. */
  #isLeaseLost({ workerId }: Doubt): boolean {
    return this.#deps.lease.workerId !== workerId
  }

  /** @throws the error of the first run that Postgres refused, once the others are handed back */
  async #handBack(runs: readonly RunFence[]): Promise<void> {
    const failures: unknown[] = []
    const onFailure = (error: unknown): void => void failures.push(error)
    for (let left = runs; left.length > 0;) {
      // A batch holds one run per schedule.
      const batch = new Set(new Map(left.map((run) => [run.scheduleId, run])).values())
      const settlements = [...batch].map((run) => settlementOf(run, { kind: 'handed_back' }, { retry: NO_RETRY }))
      const batches = batchesOf(this.#deps.hooks, settlements)
      emitSettled(this.#deps.events, await settleAll(batches, (part) => settleApart(this.#deps, part, { onFailure })))
      left = left.filter((run) => !batch.has(run))
    }
    if (failures.length > 0) throw failures[0]
  }
}

function nameOf({ runId, token }: HeldFence): string {
  return `${runId}:${token}`
}

export interface InDoubtCheckDeps extends ServiceDeps {
  /** Looks for runs that this worker does not know of, and returns how many there are. */
  readonly check: () => Promise<number>
}

const CHECK_PERIOD_MS = 60_000

/** Checks once a minute for runs that the ledger says this worker holds but the worker does not know. */
export class InDoubtCheck extends PeriodicService<{ readonly found: number }> {
  override readonly name = 'in-doubt check'
  readonly #deps: InDoubtCheckDeps

  constructor(deps: InDoubtCheckDeps) {
    super(deps, CHECK_PERIOD_MS)
    this.#deps = deps
  }

  async runOnce(): Promise<{ readonly found: number }> {
    return { found: await this.#deps.check() }
  }
}
