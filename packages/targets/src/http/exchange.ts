import type { Dispatcher } from 'undici'

/** What came back: never more of the body than was asked to be kept. */
export interface Answer {
  readonly status: number
  /** One value each; the first where there were several. */
  readonly header: (name: string) => string | undefined
  /** The head of the body. */
  readonly body: Buffer
  /** Whether there was more, or may have been. */
  readonly isCut: boolean
}

/** How an exchange of a request for an answer ended. */
export type ExchangeEnd =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** With an answer if its status had arrived already. */
  | { readonly kind: 'broken'; readonly error: Error; readonly answer: Answer | undefined }
  /** The signal fired first. */
  | { readonly kind: 'left' }

export interface ExchangeLimits {
  /** A body that ends within is read to its end, and its connection used again; beyond, the connection is cut. */
  readonly readBytes: number
  /** So much of it is held in memory. */
  readonly keptBytes: number
}

/**
 * One request and its answer, written once and never again: whatever breaks is told, and only the schedule's policy
 * decides on another attempt.
 *
 * Speaks to undici directly because its promise does not settle on abort while a request waits for a connection, and an
 * attempt must end as soon as its signal fires.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<ExchangeEnd> {
  if (signal.aborted) return Promise.resolve({ kind: 'left' })
  const { promise, resolve } = Promise.withResolvers<ExchangeEnd>()
  const body = new BodyHead(limits.keptBytes)
  let controller: Dispatcher.DispatchController | undefined
  let head: Pick<Answer, 'status' | 'header'> | undefined
  let isOver = false

  function end(how: ExchangeEnd): void {
    if (isOver) return
    isOver = true
    signal.removeEventListener('abort', leave)
    resolve(how)
  }

  /** Destroys the socket, so the other side learns of it at once. */
  function leave(): void {
    end({ kind: 'left' })
    controller?.abort(new Error('left'))
  }

  signal.addEventListener('abort', leave, { once: true })
  dispatcher.dispatch(request, {
    onRequestStart: (given) => {
      // Left while it waited for a connection. Thrown before a byte is written; the connection stays.
      if (isOver) throw new Error('left')
      controller = given
    },
    onResponseStart: (_controller, status, headers) => {
      head = { status, header: (name) => firstOf(headers[name]) }
    },
    onResponseData: (given, chunk) => {
      body.add(chunk)
      if (head === undefined || body.seenBytes <= limits.readBytes) return
      end({ kind: 'answered', answer: { ...head, body: body.toBuffer(), isCut: true } })
      given.abort(new Error('more than is read'))
    },
    onResponseEnd: () => {
      if (head === undefined) return
      end({ kind: 'answered', answer: { ...head, body: body.toBuffer(), isCut: body.isCut } })
    },
    onResponseError: (_controller, error) => {
      const answer = head === undefined ? undefined : { ...head, body: body.toBuffer(), isCut: true }
      end({ kind: 'broken', error, answer })
    },
  })
  return promise
}

class BodyHead {
  readonly #keptBytes: number
  readonly #chunks: Buffer[] = []
  seenBytes = 0

  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes
  }

  get isCut(): boolean {
    return this.seenBytes > this.#keptBytes
  }

  add(chunk: Buffer): void {
    const room = this.#keptBytes - this.seenBytes
    // A copy, because a slice would hold on to the whole chunk.
    if (room > 0) this.#chunks.push(Buffer.from(chunk.subarray(0, room)))
    this.seenBytes += chunk.length
  }

  toBuffer(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}

function firstOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
