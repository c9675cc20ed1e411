import { Readable } from 'node:stream'

import type { Permission } from './permission.ts'

/** One change, as it is sent. */
export interface FeedText {
  /** Behind it; the same for whoever reads the same change. */
  readonly cursor: string
  readonly text: string
}

const BUFFERED_MAX_BYTES = 1_048_576
const HIGH_WATER_BYTES = 65_536

/**
 * One client that follows events. Its stream ends when the client goes, when it does not read what it is sent, or when the
 * service ends it.
 */
export class Follower {
  readonly stream: Readable
  /** Fires when the stream is over, whoever ended it. */
  readonly signal: AbortSignal
  /** What came from the poller while the follower still caught up by itself; undefined once it has. */
  #held: FeedText[] | undefined
  /** Read by itself, and perhaps yet to come from the poller. */
  #seen = new Set<string>()
  #drained = Promise.withResolvers<void>()
  readonly #permission: Permission
  readonly #onFault: (error: unknown) => void
  /** What may be sent only once its key has been looked at again, in order. */
  #waiting: string[] = []
  #waitingBytes = 0
  #asking: Promise<void> | undefined
  #isEnded = false
  #isLive = false

  /** @param onFault is told why the stream was cut, if the fault is ours */
  constructor(permission: Permission, onFault: (error: unknown) => void) {
    this.#permission = permission
    this.#onFault = onFault
    const ended = new AbortController()
    this.signal = ended.signal
    this.stream = new Readable({ highWaterMark: HIGH_WATER_BYTES, read: () => this.#drained.resolve() })
    this.stream.once('close', () => {
      ended.abort()
      this.#drained.resolve()
    })
    // Who destroys it says so by `close`; a socket that broke is no fault of ours.
    this.stream.on('error', () => undefined)
  }

  /** Whether it has got as far as the poller of its project. */
  get isLive(): boolean {
    return this.#isLive && this.#waiting.length === 0
  }

  /** Whether whatever is sent from now on is lost. */
  get isOver(): boolean {
    return this.#isEnded || this.signal.aborted
  }

  /** From now on all it gets comes from the poller, and it has missed nothing. */
  goLive(): void {
    this.#isLive = true
  }

  /** At once; for what tells nothing of the project. */
  send(text: string): void {
    if (this.isOver) return
    this.stream.push(text)
    this.#destroyIfFull()
  }

  /** Sends an event: at once if the key was looked at lately, else once it has been. */
  tell(text: string): void {
    if (this.isOver) return
    if (this.#waiting.length === 0 && this.#permission.isFresh) {
      this.send(text)
      return
    }
    this.#waiting.push(text)
    this.#waitingBytes += Buffer.byteLength(text)
    this.#asking ??= this.#sendOnceAllowed()
    this.#destroyIfFull()
  }

  /** Looks at the key again. Nobody knows while the database is away, and nothing is sent that would need it. Never rejects. */
  async endIfRefused(): Promise<void> {
    try {
      if ((await this.#permission.ask()) === false) this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Cuts the stream because of a fault of ours. The client comes back, and goes on after the last event that it got. */
  fail(error: unknown): void {
    this.#onFault(error)
    this.stream.destroy()
  }

  /** Says goodbye. What was sent before still arrives. */
  end(): void {
    if (this.isOver) return
    this.#isEnded = true
    this.stream.push(null)
  }

  /** Resolves once the client has taken what it was sent, or is gone. */
  async whenDrained(): Promise<void> {
    await this.#asking
    if (this.signal.aborted || this.stream.readableLength < HIGH_WATER_BYTES) return
    this.#drained = Promise.withResolvers()
    await this.#drained.promise
  }

  /** From the poller that all followers of a project share. */
  give(change: FeedText): void {
    if (this.#held !== undefined) this.#held.push(change)
    else if (!this.#seen.delete(change.cursor)) this.tell(change.text)
  }

  /** Keeps what the poller gives until `release`. */
  hold(): void {
    this.#held = []
  }

  /** @param seen what was sent meanwhile, and is not to be sent again */
  release(seen: Set<string>): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#seen = seen
    for (const change of held) this.give(change)
  }

  /** The poller has passed all that the follower had read by itself. */
  forget(): void {
    this.#seen.clear()
    this.goLive()
  }

  /** Never rejects: nobody may be waiting for it. */
  async #sendOnceAllowed(): Promise<void> {
    try {
      await this.#askThenSend()
    } catch (error) {
      this.fail(error)
    }
  }

  async #askThenSend(): Promise<void> {
    const isAllowed = await this.#permission.settled(this.signal)
    // At once, one after the other: what is told from here on must come behind what waits.
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    this.#asking = undefined
    if (!isAllowed) this.end()
    for (const text of waiting) this.send(text)
  }

  #destroyIfFull(): void {
    if (this.stream.readableLength + this.#waitingBytes > BUFFERED_MAX_BYTES) this.stream.destroy()
  }
}
