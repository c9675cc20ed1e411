import { Readable } from 'node:stream'

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
  #isEnded = false
  #isLive = false

  constructor() {
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
    return this.#isLive
  }

  /** From now on all it gets comes from the poller, and it has missed nothing. */
  goLive(): void {
    this.#isLive = true
  }

  send(text: string): void {
    if (this.#isEnded || this.signal.aborted) return
    this.stream.push(text)
    if (this.stream.readableLength > BUFFERED_MAX_BYTES) this.stream.destroy()
  }

  /** Says goodbye. What was sent before still arrives. */
  end(): void {
    if (this.#isEnded || this.signal.aborted) return
    this.#isEnded = true
    this.stream.push(null)
  }

  /** Resolves once the client has taken what it was sent, or is gone. */
  async whenDrained(): Promise<void> {
    if (this.signal.aborted || this.stream.readableLength < HIGH_WATER_BYTES) return
    this.#drained = Promise.withResolvers()
    await this.#drained.promise
  }

  /** From the poller that all followers of a project share. */
  give(change: FeedText): void {
    if (this.#held !== undefined) this.#held.push(change)
    else if (!this.#seen.delete(change.cursor)) this.send(change.text)
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
}
