import { ApiError, RETRY_AFTER_PROBLEMS, UnreachableError, type LiveEvent } from '@carillon/api'

import type { Cli } from '../process/cli.ts'
import { connect } from './connect.ts'

/** An event of the server; or `open`, each time a connection is established: from then on no event is missed. */
export type FollowedEvent = LiveEvent | { readonly event: 'open' }

interface FollowOptions {
  /** Start after this event. @default now */
  readonly lastEventId?: string
  /** Stops following. */
  readonly signal: AbortSignal
  /** Called before each reconnect, with the delay. */
  readonly onBreak?: (waitMs: number) => void
}

const WAIT_FIRST_MS = 500
const WAIT_MAX_MS = 15_000

/**
 * Follows the event stream until the signal aborts. If the connection breaks, reconnects with backoff and continues after the last
 * event seen. Throws if the first connection fails, because then the URL or the key is wrong and waiting does not help. Throws if
 * a later one fails for a reason that does not pass, such as a revoked key.
 */
export async function* followEvents(cli: Cli, options: FollowOptions): AsyncGenerator<FollowedEvent> {
  const { signal, onBreak } = options
  let { lastEventId } = options
  let waitMs = WAIT_FIRST_MS
  let hasBeenOpen = false
  while (!signal.aborted) {
    try {
      const onPosition = (position: string): void => {
        lastEventId = position
      }
      for await (const followed of openStream(cli, { lastEventId, onPosition }, signal)) {
        if (followed.event === 'open') {
          hasBeenOpen = true
          waitMs = WAIT_FIRST_MS
        }
        yield followed
      }
    } catch (error) {
      if (signal.aborted) return
      if (!hasBeenOpen || !isTransient(error)) throw error
    }
    if (signal.aborted) return
    onBreak?.(waitMs)
    await cli.clock.sleep(waitMs, signal)
    waitMs = Math.min(waitMs * 2, WAIT_MAX_MS)
  }
}

/** One connection. Throws if it breaks; returns if the server closes it. */
async function* openStream(
  cli: Cli,
  from: { lastEventId: string | undefined; onPosition: (position: string) => void },
  signal: AbortSignal,
): AsyncGenerator<FollowedEvent> {
  const opened = Promise.withResolvers<void>()
  const closing = new AbortController()
  const client = connect(cli, {
    signal: AbortSignal.any([signal, closing.signal]),
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      if (response.ok) opened.resolve()
      return response
    },
  })
  const events = client.events(from)
  const first = events.next()
  // If the consumer stops at `open`, closing the connection rejects this promise when nothing awaits it any more.
  first.catch(() => undefined)
  try {
    await Promise.race([opened.promise, first])
    yield { event: 'open' }
    const result = await first
    if (result.done === true) return
    yield result.value
    yield* events
  } finally {
    closing.abort()
  }
}

/** True if the next try may succeed: the server is restarting, or the network is down. */
function isTransient(error: unknown): boolean {
  if (error instanceof ApiError) return RETRY_AFTER_PROBLEMS.includes(error.code)
  // fetch throws a TypeError if the connection breaks in the middle of a response.
  return error instanceof UnreachableError || error instanceof TypeError
}
