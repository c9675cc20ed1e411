import { randomUUID } from 'node:crypto'

import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Lease } from '../lease.ts'
import { Service } from '../service.ts'
import { transact, type Db, type Tx } from '../store/database.ts'
import { claimTurn, releaseTurn, storeTurn, type ClaimedTurn } from '../store/service-turns.ts'

export interface TurnServiceDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  /** In whose name turns are taken; without a live lease none is. @default an id of its own, for use outside of a worker */
  readonly lease?: Pick<Lease, 'workerId'>
}

export interface TurnServiceOptions {
  /** The name of its row in `service_turns`. */
  readonly turn: string
  /** How often a worker looks whether a slice is due: what somebody asked for begins that soon. */
  readonly lookMs: number
  /** After the first failure; twice as long after each further one. */
  readonly pauseAfterFailureMs: number
  /** @default 5 seconds */
  readonly pauseMaxMs?: number
}

/** What a slice came to. */
export interface Slice<Counts> {
  readonly counts: Counts
  /** Where the next slice goes on, as JSON. */
  readonly cursor: unknown
  /** Until the next slice. */
  readonly restMs: number
  /** Up to which instant the work is done. @default null: as before */
  readonly reachedAt?: number | null
  /** Whether what was asked for is done. @default false */
  readonly isAnswered?: boolean
  /** Written in the transaction that stores the cursor: both, or neither. Must bear repeating. */
  readonly write?: (tx: Tx) => Promise<void>
  /** Called once the cursor is stored, and not if the turn turned out to be another worker's. */
  readonly afterwards?: () => void
  /** What could not be done this time though the slice is over: thrown once the cursor is stored. */
  readonly failure?: Error | undefined
}

/** Longer than a slice takes. A worker that was stopped for longer than this stores nothing. */
const SLICE_LIMIT_MS = 30_000
/** How long a stop waits for a turn to be given back. After that it runs out by itself. */
const RELEASE_MS = 1000
/** For how long after its next slice is due a worker may be late before another one takes over. */
const HOLD_MS = 10_000

/**
 * A service that one worker at a time does, a bounded slice at a time. Its row in `service_turns` says when the next slice is due,
 * where it goes on and whose turn it is. The turn stays with the worker that did the last slice, so that what it remembers is of
 * use; it passes to another one when that worker stops or is late.
 *
 * A worker that was stopped in the middle of a slice and wakes up after its turn has run out stores nothing. What a slice writes by
 * itself must bear repeating: the next worker goes on from the same cursor.
 */
export abstract class TurnService<Counts> extends Service<Counts | undefined> {
  readonly #deps: TurnServiceDeps
  readonly #options: TurnServiceOptions
  readonly #lease: Pick<Lease, 'workerId'>
  /** How long ago that was up to which the work is done, and when this was known. */
  #lag: { readonly ms: number; readonly knownAtMs: number } | null = null
  #heldBy: string | undefined
  #restMs = 0
  /** Until the next slice is due, if this one failed in part. */
  #restAfterFailureMs = 0

  protected constructor(deps: TurnServiceDeps, options: TurnServiceOptions) {
    const { pauseAfterFailureMs: firstMs, pauseMaxMs } = options
    super(deps, { firstMs, ...(pauseMaxMs !== undefined && { maxMs: pauseMaxMs }) })
    this.#deps = deps
    this.#options = options
    this.#lease = deps.lease ?? { workerId: randomUUID() }
  }

  /** Does a bounded part of the work, from the cursor of the turn on. */
  protected abstract slice(turn: ClaimedTurn): Promise<Slice<Counts>>

  /** Called when another worker has the turn: what was remembered for the next slice is of no use any more. */
  protected forget(): void {
    // Most remember nothing.
  }

  /** Called when a slice failed or was not stored: what it took from memory is to be done again. */
  protected abandon(): void {
    // Most keep everything in their cursor.
  }

  /** How long ago that was up to which the work is done, whichever worker does it; null if that is not known. */
  get lagMs(): number | null {
    return this.#lag === null ? null : this.#lag.ms + this.#deps.clock.monotonicMs() - this.#lag.knownAtMs
  }

  /** Does the next slice, if it is due and this worker's turn; undefined if not. */
  async runOnce(): Promise<Counts | undefined> {
    this.#restMs = this.#options.lookMs
    this.#restAfterFailureMs = 0
    const { workerId } = this.#lease
    if (workerId === undefined) return undefined
    const { db, clock } = this.#deps
    const { turn: name } = this.#options
    const look = await claimTurn(db, { name, workerId, forMs: SLICE_LIMIT_MS, now: clock.databaseNow() })
    this.#noteReached(look.reachedAt, look.now)
    this.#heldBy = look.isOwn ? workerId : undefined
    if (!look.isOwn) this.forget()
    if (look.turn === undefined) return undefined
    const slice = await this.#sliceStored(look.turn)
    if (slice === undefined) return undefined
    this.#restMs = Math.min(slice.restMs, this.#options.lookMs)
    if (slice.failure === undefined) return slice.counts
    this.#restAfterFailureMs = this.#restMs
    throw slice.failure
  }

  /** Also gives the turn back, so that another worker goes on at once. */
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

  /** A look before the next slice is due would find nothing to do, and the service would seem to work again. */
  protected override pauseAfterFailure(failures: number): number {
    return Math.max(super.pauseAfterFailure(failures), this.#restAfterFailureMs)
  }

  /** Undefined if another worker took the turn meanwhile: then nothing of the slice was stored, and nobody is told of it. */
  async #sliceStored(turn: ClaimedTurn): Promise<Slice<Counts> | undefined> {
    let isStored = false
    try {
      const slice = await this.slice(turn)
      isStored = await this.#store(turn, slice)
      if (isStored) slice.afterwards?.()
      else this.forget()
      return isStored ? slice : undefined
    } finally {
      if (!isStored) this.abandon()
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
