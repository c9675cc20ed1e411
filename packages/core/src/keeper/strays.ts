import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { FailureRecord, pauseAfter, type Part, type ServiceFailure } from '../failure-record.ts'
import type { Lease } from '../lease.ts'
import { NO_RETRY } from '../policy/retry.ts'
import { settleApart, type PendingSettlement } from '../settle-batch.ts'
import { tellSettled } from '../settled-events.ts'
import { settlementOf } from '../settlement.ts'
import type { Db } from '../store/database.ts'
import { isConnectionInDoubt } from '../store/sqlstate.ts'
import { areEarlierOver, findRunningRuns, newTransactionId } from '../store/stray-runs.ts'
import type { HeldRun } from '../store/taken-run.ts'

export interface StraysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  /** What this worker sees through, with the fence under which it was taken. */
  readonly held: () => Iterable<Fenced>
}

/** A run that was taken once more has another token. */
type Fenced = Pick<HeldRun, 'runId' | 'token'>

/** A reason to search: a take of which nobody knows whether it was committed, or a look that found something. */
interface Doubt {
  readonly workerId: string
  /** Later than that of any transaction that may have made a stray; undefined until it could be asked for. */
  laterTransactionId: string | undefined
}

/** After a search that failed, or that a transaction from before may still make wrong. */
const SEARCH_AGAIN_MS = 500
/** How many strays one search hands back at most. */
const STRAYS_MAX = 1000

/**
 * Runs that were taken in this worker's name without its knowledge: the connection broke before the answer to the commit came.
 * Their lease lives on, so no rescuer would find them. They are handed back, for nothing was called: no attempt is charged, and
 * whoever has room takes them at once.
 *
 * The worker searches after a take that failed that way, and when a look finds a stray. It looks once a minute, because not every
 * stray comes from a take: a restored backup or a statement by hand can write the name of a living worker into a run.
 */
export class Strays implements Part {
  readonly name = 'strays'
  readonly #deps: StraysDeps
  readonly #failures: FailureRecord
  /** Under way: from before their transaction until their runs are held. */
  readonly #takes = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()
  #isAbandoned = false
  #doubt: Doubt | undefined
  #search: Promise<void> | undefined

  constructor(deps: StraysDeps) {
    this.#deps = deps
    this.#failures = new FailureRecord(deps, this)
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  /** Runs a take: all of it, until what it took is held. What it throws is thrown on. */
  async watch<Taken>(workerId: string, take: () => Promise<Taken>): Promise<Taken> {
    const taking = take()
    this.#takes.add(taking)
    try {
      return await taking
    } catch (error) {
      if (isConnectionInDoubt(error)) this.#searchFor({ workerId, laterTransactionId: undefined })
      throw error
    } finally {
      this.#takes.delete(taking)
    }
  }

  /**
   * Looks for strays, and has a search hand back those that it finds again. A run is none if this worker holds it before or after
   * the look, or is taking it.
   * @returns how many were found
   */
  async look(): Promise<number> {
    const { lease } = this.#deps
    const { workerId } = lease
    if (workerId === undefined || this.#stopping.signal.aborted) return 0
    const heldBefore = this.#heldNames()
    const { running } = await this.#findRunning(workerId)
    const heldAfter = this.#heldNames()
    const strays = running.map(nameOf).filter((name) => !heldBefore.has(name) && !heldAfter.has(name))
    if (strays.length === 0 || lease.workerId !== workerId) return 0
    this.#searchFor({ workerId, laterTransactionId: undefined })
    return strays.length
  }

  /** Searches once more if there is a doubt left. What is not found then is left to a rescuer. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#search
  }

  /** Hands nothing back any more: a run whose settlement was given up is not held, and was called all the same. */
  abandon(): void {
    this.#isAbandoned = true
    this.#stopping.abort()
  }

  #searchFor(doubt: Doubt): void {
    // One doubt stands for all: who is sure of the latest is sure of those before it.
    this.#doubt = doubt
    if (this.#search !== undefined) return
    this.#search = this.#searchUntilSure()
    this.#failures.own(this.#search)
  }

  async #searchUntilSure(): Promise<void> {
    const { signal } = this.#stopping
    for (let doubt = this.#doubt; doubt !== undefined; doubt = this.#doubt) {
      let pauseMs = SEARCH_AGAIN_MS
      try {
        const isSure = await this.#handBackStrays(doubt)
        this.#failures.succeeded()
        if (isSure && this.#doubt === doubt) this.#doubt = undefined
      } catch (error) {
        pauseMs = pauseAfter(this.#failures.failed(error), { firstMs: SEARCH_AGAIN_MS })
      }
      if (signal.aborted) break
      if (this.#doubt === doubt) await this.#deps.clock.sleep(pauseMs, signal)
    }
    // At once: a doubt that comes now must find that nobody searches.
    this.#search = undefined
  }

  /**
   * @returns false if there may be more: a take in doubt may still be committed, because its server need not have noticed yet that
   * nobody listens; or there were too many for one search
   */
  async #handBackStrays(doubt: Doubt): Promise<boolean> {
    const { db } = this.#deps
    if (this.#isLeaseLost(doubt)) return true
    doubt.laterTransactionId ??= await newTransactionId(db)
    const areOver = await areEarlierOver(db, { transactionId: doubt.laterTransactionId })
    const { running, areAll } = await this.#findRunning(doubt.workerId)
    // Whoever held them was told to let go, so all would seem to be strays.
    if (this.#isLeaseLost(doubt) || this.#isAbandoned) return true
    const held = this.#heldNames()
    // What was settled since the search is fenced (I12).
    await this.#handBack(running.filter((run) => !held.has(nameOf(run))))
    return areOver && areAll
  }

  /** What runs in the name of this worker. When it resolves, everything in it that a take of this worker took is held. */
  async #findRunning(workerId: string): Promise<{ readonly running: readonly HeldRun[]; readonly areAll: boolean }> {
    // Among more rows than this worker holds there is a stray.
    const limit = this.#heldNames().size + STRAYS_MAX
    const running = await findRunningRuns(this.#deps.db, { workerId, limit })
    // A take whose commit was seen just now may not hold its runs yet. What a later one takes has another fence.
    await Promise.allSettled(this.#takes)
    return { running, areAll: running.length < limit }
  }

  #heldNames(): ReadonlySet<string> {
    return new Set([...this.#deps.held()].map(nameOf))
  }

  /** Then it runs out, and a rescuer finds what was taken under it. */
  #isLeaseLost({ workerId }: Doubt): boolean {
    return this.#deps.lease.workerId !== workerId
  }

  /** @throws what Postgres said of the first stray that could not be written, once the others are */
  async #handBack(strays: readonly HeldRun[]): Promise<void> {
    const failures: unknown[] = []
    const onFailure = (error: unknown): void => void failures.push(error)
    for (let left = strays; left.length > 0;) {
      // One per schedule at a time, as everywhere.
      const batch = new Set(new Map(left.map((run) => [run.scheduleId, run])).values())
      const settled = await settleApart(this.#deps, [...batch].map(handedBack), { onFailure })
      for (const run of settled) tellSettled(this.#deps.events, run)
      left = left.filter((run) => !batch.has(run))
    }
    if (failures.length > 0) throw failures[0]
  }
}

function nameOf({ runId, token }: Fenced): string {
  return `${runId}:${token}`
}

function handedBack(run: HeldRun): PendingSettlement {
  return { settlement: settlementOf(run, NO_RETRY, { kind: 'handed_back' }), mayFree: true }
}
