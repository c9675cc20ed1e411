import type { IncomingHttpHeaders } from 'node:http'

import type { Dispatcher } from 'undici'

/** The target's HTTP response, with at most `keptBytes` of its body. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The first bytes of the body. */
  readonly body: Buffer
  /** True if the target sent more of the body than is kept, or may have. */
  readonly isCut: boolean
}

/** The value of a header by its lower-case name; the first if the answer has several. */
export function headerOf({ headers }: Pick<Answer, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

const EMPTY = Buffer.alloc(0)

/** How an exchange ended. */
export type ExchangeEnd =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** The connection failed. `answer` is set if its status had arrived already. */
  | { readonly kind: 'broken'; readonly error: Error; readonly answer: Answer | undefined }
  /** The signal fired before the exchange ended. */
  | { readonly kind: 'aborted' }

export interface ExchangeLimits {
  /** A body up to this size is read to its end, so its connection can be reused. For a longer body the connection is closed. */
  readonly readBytes: number
  /** The most bytes of a body that are kept for the outcome. The bytes after them are read and dropped. */
  readonly keptBytes: number
}

/**
 * Sends a request once. A failure is returned and never retried here: only the schedule's policy decides on another attempt.
 *
 * Uses undici's dispatcher directly, because the promise of `request` does not settle on abort while the request waits for a
 * connection, and an attempt must end as soon as its signal fires.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<ExchangeEnd> {
  if (signal.aborted) return Promise.resolve({ kind: 'aborted' })
  return new Promise((resolve) => {
    dispatcher.dispatch(request, new Exchange(limits, signal, resolve))
  })
}

const ONCE = { once: true }

/** A class, because thousands of requests wait for a connection at a time: each needs one object, not a closure per event. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #limits: ExchangeLimits
  readonly #signal: AbortSignal
  readonly #resolve: (end: ExchangeEnd) => void
  /** Ends the exchange and destroys the socket, so the target notices the abort at once. */
  readonly #abort = (): void => {
    this.#end({ kind: 'aborted' })
    this.#controller?.abort(new Error('aborted'))
  }
  #controller: Dispatcher.DispatchController | undefined
  #head: Pick<Answer, 'status' | 'headers'> | undefined
  /** The kept part of the body. */
  #kept = EMPTY
  #seenBytes = 0
  #isOver = false

  constructor(limits: ExchangeLimits, signal: AbortSignal, resolve: (end: ExchangeEnd) => void) {
    this.#limits = limits
    this.#signal = signal
    this.#resolve = resolve
    signal.addEventListener('abort', this.#abort, ONCE)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The signal fired while the request waited for a connection. Throwing here drops the request and leaves the connection open.
    if (this.#isOver) throw new Error('aborted')
    this.#controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#head = { status, headers }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#keep(chunk)
    if (this.#head === undefined || this.#seenBytes <= this.#limits.readBytes) return
    this.#end({ kind: 'answered', answer: this.#answer(this.#head, true) })
    controller.abort(new Error('more than is read'))
  }

  onResponseEnd(): void {
    if (this.#head === undefined) return
    const isCut = this.#seenBytes > this.#limits.keptBytes
    this.#end({ kind: 'answered', answer: this.#answer(this.#head, isCut) })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const answer = this.#head === undefined ? undefined : this.#answer(this.#head, true)
    this.#end({ kind: 'broken', error, answer })
  }

  #keep(chunk: Buffer): void {
    const room = this.#limits.keptBytes - this.#seenBytes
    this.#seenBytes += chunk.length
    if (room <= 0) return
    // A copy, because a slice would keep the whole chunk in memory.
    const head = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk)
    this.#kept = this.#kept.length === 0 ? head : Buffer.concat([this.#kept, head])
  }

  #answer({ status, headers }: Pick<Answer, 'status' | 'headers'>, isCut: boolean): Answer {
    return { status, headers, body: this.#kept, isCut }
  }

  #end(how: ExchangeEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#abort)
    this.#resolve(how)
  }
}
