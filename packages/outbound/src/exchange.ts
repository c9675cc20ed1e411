import type { IncomingHttpHeaders } from 'node:http'

import type { OutboundAnswer, OutboundEnd, OutboundRequest } from '@carillon/core'
import type { Dispatcher } from 'undici'

import { addressRefusal, type Destination } from './destinations.ts'
import { AddressNotAllowedError } from './guard/connector.ts'

/** The value of a header by its lower-case name; the first if the answer has several. */
export function headerOf({ headers }: Pick<OutboundAnswer, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

type Head = Pick<OutboundAnswer, 'status' | 'headers'>

const EMPTY = Buffer.alloc(0)

/** undici rejects a request that is no valid HTTP with this code, and gives it to no other error. */
const INVALID_REQUEST = 'UND_ERR_INVALID_ARG'

/**
 * Sends a request once. A failure is returned and never retried here: only the caller decides on another attempt.
 *
 * Uses undici's dispatcher directly, because the promise of `request` does not settle on abort while the request waits for a
 * connection, and a request must end as soon as its signal fires.
 */
export function exchange(
  dispatcher: Dispatcher,
  destination: Destination,
  request: OutboundRequest,
  signal: AbortSignal,
): Promise<OutboundEnd> {
  if (signal.aborted) return Promise.resolve({ kind: 'aborted' })
  return new Promise((resolve) => {
    const { origin, path } = destination
    const { method, body } = request
    // The cast holds because undici only reads the list.
    const headers = request.headers as string[]
    dispatcher.dispatch(
      { origin, path, method, headers, body },
      new Exchange(destination.url, request, signal, resolve),
    )
  })
}

const ONCE = { once: true }

/** A class, because thousands of requests wait for a connection at a time: each needs one object, not a closure per event. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #url: URL
  readonly #readBytes: number
  readonly #keptBytes: number
  readonly #signal: AbortSignal
  readonly #resolve: (end: OutboundEnd) => void
  /** Ends the exchange and destroys the socket, so the other side notices the abort at once. */
  readonly #abort = (): void => {
    this.#end({ kind: 'aborted' })
    this.#controller?.abort(new Error('aborted'))
  }
  #controller: Dispatcher.DispatchController | undefined
  #head: Head | undefined
  /** The kept part of the body. */
  #kept = EMPTY
  #seenBytes = 0
  #isOver = false

  constructor(
    url: URL,
    { readBytes, keptBytes }: OutboundRequest,
    signal: AbortSignal,
    resolve: (end: OutboundEnd) => void,
  ) {
    this.#url = url
    this.#readBytes = readBytes
    this.#keptBytes = keptBytes
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
    if (this.#head === undefined || this.#seenBytes <= this.#readBytes) return
    this.#end({ kind: 'answered', answer: this.#answer(this.#head, true) })
    controller.abort(new Error('more than is read'))
  }

  onResponseEnd(): void {
    if (this.#head === undefined) return
    const isCut = this.#seenBytes > this.#keptBytes
    this.#end({ kind: 'answered', answer: this.#answer(this.#head, isCut) })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error & { readonly code?: unknown }): void {
    if (error instanceof AddressNotAllowedError) {
      this.#end({ kind: 'refused', refusal: addressRefusal(this.#url) })
    } else if (error.code === INVALID_REQUEST) {
      this.#end({ kind: 'malformed', message: error.message })
    } else {
      const answer = this.#head === undefined ? undefined : this.#answer(this.#head, true)
      this.#end({ kind: 'broken', error, answer })
    }
  }

  #keep(chunk: Buffer): void {
    const room = this.#keptBytes - this.#seenBytes
    this.#seenBytes += chunk.length
    if (room <= 0) return
    // A copy, because a slice would keep the whole chunk in memory.
    const head = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk)
    this.#kept = this.#kept.length === 0 ? head : Buffer.concat([this.#kept, head])
  }

  #answer({ status, headers }: Head, isCut: boolean): OutboundAnswer {
    return { status, headers, body: this.#kept, isCut }
  }

  #end(end: OutboundEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#abort)
    this.#resolve(end)
  }
}
