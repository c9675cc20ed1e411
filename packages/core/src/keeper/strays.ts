import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Lease } from '../lease.ts'
import { NO_RETRY } from '../policy/retry.ts'
import { own } from '../service.ts'
import { settleBatch, type PendingSettlement } from '../settle-batch.ts'
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

/** A take of which nobody knows whether it was committed. */
interface Doubt {
  readonly workerId: string
  /** Later than the take's own; undefined until it could be asked for. */
  laterTransactionId: string | undefined
}

/** After a search that failed, or that a transaction from before may still make wrong. */
const SEARCH_AGAIN_MS = 500

/**
 * Runs that were taken in this worker's name without its knowledge: the connection broke before the answer to the commit came.
 * Their lease lives on, so no rescuer would find them. They are handed back, for nothing was called: no attempt is charged, and
 * whoever has room takes them at once. Nothing is asked for unless a take has failed that way.
 */
export class Strays {
  readonly #deps: StraysDeps
  /** Under way: from before their transaction until their runs are held. */
  readonly #takes = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()
  #doubt: Doubt | undefined
  #search: Promise<void> | undefined

  constructor(deps: StraysDeps) {
    this.#deps = deps
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

  /** Searches once more if there is a doubt left. What is not found then is left to a rescuer. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#search
  }

  #searchFor(doubt: Doubt): void {
    // One doubt stands for all: who is sure of the latest is sure of those before it.
    this.#doubt = doubt
    if (this.#search !== undefined) return
    this.#search = this.#searchUntilSure()
    own(this.#deps, 'strays', this.#search)
  }

  async #searchUntilSure(): Promise<void> {
    const { clock, events } = this.#deps
    const { signal } = this.#stopping
    for (let doubt = this.#doubt; doubt !== undefined; doubt = this.#doubt) {
      try {
        const isSure = await this.#handBackStrays(doubt)
        if (isSure && this.#doubt === doubt) this.#doubt = undefined
      } catch (error) {
        events.emit('service.failed', { service: 'strays', error })
      }
      if (signal.aborted) break
      if (this.#doubt === doubt) await clock.sleep(SEARCH_AGAIN_MS, signal)
    }
    // At once: a doubt that comes now must find that nobody searches.
    this.#search = undefined
  }

  /** @returns false if a take in doubt may still be committed: its server need not have noticed yet that nobody listens */
  async #handBackStrays(doubt: Doubt): Promise<boolean> {
    const { db } = this.#deps
    if (this.#isLeaseLost(doubt)) return true
    doubt.laterTransactionId ??= await newTransactionId(db)
    const areOver = await areEarlierOver(db, { transactionId: doubt.laterTransactionId })
    const running = await findRunningRuns(db, doubt)
    // A take whose commit was seen just now may not hold its runs yet. What a later one takes has another fence.
    await Promise.allSettled(this.#takes)
    // Whoever held them was told to let go, so all would seem to be strays.
    if (this.#isLeaseLost(doubt)) return true
    const held = new Set([...this.#deps.held()].map(nameOf))
    // What was settled since the search is fenced (I12).
    await this.#handBack(running.filter((run) => !held.has(nameOf(run))))
    return areOver
  }

  /** Then it runs out, and a rescuer finds what was taken under it. */
  #isLeaseLost({ workerId }: Doubt): boolean {
    return this.#deps.lease.workerId !== workerId
  }

  async #handBack(strays: readonly HeldRun[]): Promise<void> {
    for (let left = strays; left.length > 0;) {
      // One per schedule at a time, as everywhere.
      const batch = new Set(new Map(left.map((run) => [run.scheduleId, run])).values())
      const settled = await settleBatch(this.#deps, [...batch].map(handedBack))
      for (const run of settled) tellSettled(this.#deps.events, run)
      left = left.filter((run) => !batch.has(run))
    }
  }
}

function nameOf({ runId, token }: Fenced): string {
  return `${runId}:${token}`
}

function handedBack(run: HeldRun): PendingSettlement {
  return { settlement: settlementOf(run, NO_RETRY, { kind: 'handed_back' }), mayFree: true }
}
