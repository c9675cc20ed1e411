import { Readable } from 'node:stream'

import type { EventMessage } from './messages.ts'
import type { StreamPermission } from './permission.ts'

const BUFFERED_MAX_BYTES = 1_048_576
const HIGH_WATER_BYTES = 65_536

/**
 * One client that follows events. Its stream ends when the client disconnects, when the client does not read what it is sent, or
 * when this server ends it.
 */
export class Follower {
  readonly stream: Readable
  /** Fires when the stream has ended, for whatever reason. */
  readonly signal: AbortSignal
  /** Deliveries of the poller that are held back in the last step of catching up; undefined at any other time. */
  #held: EventMessage[] | undefined
  /** Cursors of events that were sent while catching up and that the poller may still deliver. */
  #seen = new Set<string>()
  #drained = Promise.withResolvers<void>()
  readonly #permission: StreamPermission
  readonly #onFault: (error: unknown) => void
  /** Events that wait for a permission check, in order. */
  #waiting: string[] = []
  #waitingBytes = 0
  #checking: Promise<void> | undefined
  #isEnded = false
  #isLive = false

  /** @param onFault receives the error if the stream is cut because of a fault of this server */
  constructor(permission: StreamPermission, onFault: (error: unknown) => void) {
    this.#permission = permission
    this.#onFault = onFault
    const ended = new AbortController()
    this.signal = ended.signal
    this.stream = new Readable({ highWaterMark: HIGH_WATER_BYTES, read: () => this.#drained.resolve() })
    this.stream.once('close', () => {
      ended.abort()
      this.#drained.resolve()
    })
    // A broken socket is not a fault of this server. Every end of the stream emits `close`, which is handled above.
    this.stream.on('error', () => undefined)
  }

  /** True once the follower has caught up with the poller and nothing waits for a permission check. */
  get isLive(): boolean {
    return this.#isLive && this.#waiting.length === 0
  }

  /** True once nothing more can be sent. */
  get isOver(): boolean {
    return this.#isEnded || this.signal.aborted
  }

  /** Notes that every further event comes from the poller, and that none was missed. */
  goLive(): void {
    this.#isLive = true
  }

  /** Sends at once, without a permission check. Only for text that reveals nothing about the project. */
  sendUnchecked(text: string): void {
    if (this.isOver) return
    this.stream.push(text)
    this.#destroyIfFull()
  }

  /** Sends an event: at once if permission was checked recently, otherwise after a check. */
  sendEvent(text: string): void {
    if (this.isOver) return
    if (this.#waiting.length === 0 && this.#permission.isFresh) {
      this.sendUnchecked(text)
      return
    }
    this.#waiting.push(text)
    this.#waitingBytes += Buffer.byteLength(text)
    this.#checking ??= this.#sendOnceAllowed()
    this.#destroyIfFull()
  }

  /** Ends the stream if the client may no longer follow events. A check without an answer leaves it open. Never rejects. */
  async endIfRefused(): Promise<void> {
    try {
      if ((await this.#permission.check()) === false) this.end()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Cuts the stream because of a fault of this server. The client reconnects and resumes after its last event. */
  fail(error: unknown): void {
    this.#onFault(error)
    this.stream.destroy()
  }

  /** Ends the stream without waiting. The client still receives everything that was sent before. */
  end(): void {
    if (this.isOver) return
    this.#isEnded = true
    this.stream.push(null)
  }

  /** Sends the last event, after a permission check if one is due, and ends the stream. Never rejects. */
  async endWith(text: string): Promise<void> {
    this.sendEvent(text)
    await this.#checking
    this.end()
  }

  /** Resolves once the client has read enough for more to be sent, or is gone. */
  async whenDrained(): Promise<void> {
    await this.#checking
    if (this.signal.aborted || this.stream.readableLength < HIGH_WATER_BYTES) return
    this.#drained = Promise.withResolvers()
    await this.#drained.promise
  }

  /** Receives an event from the poller, which all followers of a project share. */
  deliver(message: EventMessage): void {
    if (this.#held !== undefined) this.#held.push(message)
    else if (!this.#seen.delete(message.cursor)) this.sendEvent(message.text)
  }

  /** Holds deliveries back until `releaseDeliveries`. */
  holdDeliveries(): void {
    this.#held = []
  }

  /** @param seen cursors of events that were sent meanwhile and must not be sent twice */
  releaseDeliveries(seen: Set<string>): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#seen = seen
    for (const message of held) this.deliver(message)
  }

  /** Called once the poller has passed every event that was sent while catching up. */
  finishCatchUp(): void {
    this.#seen.clear()
    this.goLive()
  }

  /** Never rejects, because it is not always awaited. */
  async #sendOnceAllowed(): Promise<void> {
    try {
      await this.#checkThenSend()
    } catch (error) {
      this.fail(error)
    }
  }

  async #checkThenSend(): Promise<void> {
    const isAllowed = await this.#permission.checkUntilAnswered(this.signal)
    // No await from here on: an event sent meanwhile would overtake those that wait.
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    this.#checking = undefined
    if (!isAllowed) this.end()
    for (const text of waiting) this.sendUnchecked(text)
  }

  #destroyIfFull(): void {
    if (this.stream.readableLength + this.#waitingBytes > BUFFERED_MAX_BYTES) this.stream.destroy()
  }
}
