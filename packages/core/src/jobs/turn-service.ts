import { type Db, type Tx } from '../db/database.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { Lease } from '../kernel/lease.ts'
import { Service } from '../kernel/service.ts'
import { claimTurn, releaseTurn, storeTurn, type ClaimedTurn } from './store/turns.ts'

export { readReached } from './store/turns.ts'
export type { ClaimedTurn } from './store/turns.ts'

export interface TurnServiceDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  /** The lease of the worker that claims turns. Without a valid lease it claims none. */
  readonly lease: Pick<Lease, 'workerId'>
}

export interface TurnServiceOptions {
  /** The name of the service's row in `service_turns`. */
  readonly turn: string
  /** How often a worker looks whether a slice is due. A request waits this long at most before a worker sees it. */
  readonly lookMs: number
  /** The pause after the first failure. It doubles with each further one. */
  readonly pauseAfterFailureMs: number
  /** The longest pause after a failure. @default 5 seconds */
  readonly pauseMaxMs?: number
}

/** The result of a slice. */
export interface Slice<Counts> {
  readonly counts: Counts
  /** Where the next slice continues, as JSON. */
  readonly cursor: unknown
  /** Time until the next slice is due. */
  readonly restMs: number
  /** The work is done up to this instant. @default null: the stored value stays */
  readonly reachedAt?: number | null
  /** True if the slice completes what was requested. @default false */
  readonly isAnswered?: boolean
  /** Writes in the transaction that stores the cursor. May be called again if that transaction is retried. */
  readonly write?: (tx: Tx) => Promise<void>
  /** Called after the commit; not called if another worker has claimed the turn meanwhile. */
  readonly afterStored?: () => void
  /** The error of a part of the slice that failed. The service throws it after the cursor is stored. */
  readonly failure?: Error | undefined
}

/** How long a claim lasts: longer than any slice takes. A worker that is suspended for longer loses the turn and stores nothing. */
const SLICE_LIMIT_MS = 30_000
/** How long a stop waits for the release of the turn. After that the turn expires by itself. */
const RELEASE_MS = 1000
/** How late a worker may be with its next slice before another worker may claim the turn. */
const HOLD_MS = 10_000

/**
 * A service that runs on one worker at a time, in bounded slices. Its row in `service_turns` says when the next slice is due, where it
 * continues and which worker has the turn. The turn stays with the worker that did the last slice, so that what
 * it keeps in memory stays useful. Another worker gets the turn when its holder stops or is late.
 *
 * A worker that was suspended in the middle of a slice and resumes after its turn has expired stores no cursor. So the writes that a
 * slice makes before its cursor is stored must be repeatable: the next worker continues from the same cursor.
 */
export abstract class TurnService<Counts> extends Service<Counts | undefined> {
  readonly #deps: TurnServiceDeps
  readonly #options: TurnServiceOptions
  /** The age of the instant up to which the work is done, and when this was read. */
  #lag: { readonly ms: number; readonly knownAtMs: number } | null = null
  #heldBy: string | undefined
  #restMs = 0
  /** Time until the next slice is due, if a part of the last slice failed; else 0. */
  #restAfterFailureMs = 0

  protected constructor(deps: TurnServiceDeps, options: TurnServiceOptions) {
    const { pauseAfterFailureMs: firstMs, pauseMaxMs } = options
    super(deps, { firstMs, ...(pauseMaxMs !== undefined && { maxMs: pauseMaxMs }) })
    this.#deps = deps
    this.#options = options
  }

  /** Does a bounded part of the work, beginning at the cursor of the turn. */
  protected abstract slice(turn: ClaimedTurn): Promise<Slice<Counts>>

  /** Called when another worker has the turn: clear what was kept in memory for the next slice. */
  protected onTurnLost(): void {
    // Most services keep nothing in memory.
  }

  /** Called when a slice failed or was not stored: restore what it took from memory. */
  protected onSliceFailed(): void {
    // Most services keep everything in their cursor.
  }

  /** The age of the instant up to which the work is done, by this worker or another one; null if that is not known. */
  get lagMs(): number | null {
    return this.#lag === null ? null : this.#lag.ms + this.#deps.clock.monotonicMs() - this.#lag.knownAtMs
  }

  /** Does the next slice if it is due and this worker gets the turn; otherwise returns undefined. */
  async runOnce(): Promise<Counts | undefined> {
    this.#restMs = this.#options.lookMs
    this.#restAfterFailureMs = 0
    const { db, clock, lease } = this.#deps
    const { workerId } = lease
    if (workerId === undefined) return undefined
    const { turn: name } = this.#options
    const claim = await claimTurn(db, { name, workerId, forMs: SLICE_LIMIT_MS, now: clock.databaseNow() })
    this.#noteReached(claim.reachedAt, claim.now)
    this.#heldBy = claim.isOwn ? workerId : undefined
    if (!claim.isOwn) this.onTurnLost()
    if (claim.turn === undefined) return undefined
    const slice = await this.#sliceStored(claim.turn)
    if (slice === undefined) return undefined
    this.#restMs = Math.min(slice.restMs, this.#options.lookMs)
    if (slice.failure === undefined) return slice.counts
    this.#restAfterFailureMs = this.#restMs
    throw slice.failure
  }

  /** Also releases the turn, so that another worker continues at once. */
  override async stop(): Promise<void> {
    await super.stop()
    if (this.#heldBy === undefined) return
    const { db, clock } = this.#deps
    const late = Promise.withResolvers<void>()
    const stopTimer = clock.after(RELEASE_MS, late.resolve)
    const released = releaseTurn(db, { name: this.#options.turn, workerId: this.#heldBy }).catch(() => undefined)
    this.#heldBy = undefined
    await Promise.race([released, late.promise])
    stopTimer()
  }

  protected override rest(_counts: Counts | undefined, signal: AbortSignal): Promise<void> {
    return this.#deps.clock.sleep(this.#restMs, signal)
  }

  /** Waits at least until the next slice is due. An earlier claim would do nothing and count as a success, which hides the failure. */
  protected override pauseAfterFailure(failures: number): number {
    return Math.max(super.pauseAfterFailure(failures), this.#restAfterFailureMs)
  }

  /** Undefined if another worker has claimed the turn meanwhile: then nothing is stored and no event is emitted. */
  async #sliceStored(turn: ClaimedTurn): Promise<Slice<Counts> | undefined> {
    let isStored = false
    try {
      const slice = await this.slice(turn)
      isStored = await this.#store(turn, slice)
      if (isStored) slice.afterStored?.()
      else this.onTurnLost()
      return isStored ? slice : undefined
    } finally {
      if (!isStored) this.onSliceFailed()
    }
  }

  async #store(turn: ClaimedTurn, slice: Slice<Counts>): Promise<boolean> {
    const { db, clock } = this.#deps
    const { cursor, restMs, reachedAt = null, isAnswered = false } = slice
    const isStored = await transact(db, clock, async (tx) => {
      const now = clock.databaseNow()
      const { turn: name } = this.#options
      const stored = { name, fence: turn.fence, cursor, reachedAt, restMs, isAnswered, holdMs: HOLD_MS, now }
      if (!(await storeTurn(tx, stored))) return false
      await slice.write?.(tx)
      return true
    })
    if (isStored && reachedAt !== null) this.#noteReached(reachedAt, turn.now)
    return isStored
  }

  #noteReached(reachedAt: number | null, now: number): void {
    this.#lag = reachedAt === null ? null : { ms: now - reachedAt, knownAtMs: this.#deps.clock.monotonicMs() }
  }
}
