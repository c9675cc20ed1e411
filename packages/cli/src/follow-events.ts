import { ApiError, RETRY_AFTER_PROBLEMS, UnreachableError, type FeedEvent } from '@carillon/api'

import type { Cli } from './cli.ts'
import { connect } from './connection.ts'

/** An event of the feed; or `open`, whenever a connection stands: whatever happens from then on will be told. */
export type Followed = FeedEvent | { readonly event: 'open' }

interface FollowOptions {
  /** Go on after this event. */
  readonly lastEventId?: string
  /** Ends it. */
  readonly signal: AbortSignal
  /** Told before each new try, with how long it waits. */
  readonly onBreak?: (waitMs: number) => void
}

const WAIT_FIRST_MS = 500
const WAIT_MAX_MS = 15_000

/**
 * Follows the feed until the signal fires. A connection that breaks is made again, after the last event that was told. Only
 * a first connection that fails throws: then something is wrong that waiting does not mend.
 */
export async function* followEvents(cli: Cli, options: FollowOptions): AsyncGenerator<Followed> {
  const { signal, onBreak } = options
  let { lastEventId } = options
  let waitMs = WAIT_FIRST_MS
  let hasBeenOpen = false
  while (!signal.aborted) {
    try {
      const onPosition = (position: string): void => {
        lastEventId = position
      }
      for await (const followed of openFeed(cli, { lastEventId, onPosition }, signal)) {
        if (followed.event === 'open') {
          hasBeenOpen = true
          waitMs = WAIT_FIRST_MS
        }
        yield followed
      }
    } catch (error) {
      if (signal.aborted) return
      if (!hasBeenOpen || !isPassing(error)) throw error
    }
    if (signal.aborted) return
    onBreak?.(waitMs)
    await cli.clock.sleep(waitMs, signal)
    waitMs = Math.min(waitMs * 2, WAIT_MAX_MS)
  }
}

/** One connection. What breaks it is thrown; an end without an error is a server that stops. */
async function* openFeed(
  cli: Cli,
  from: { lastEventId: string | undefined; onPosition: (position: string) => void },
  signal: AbortSignal,
): AsyncGenerator<Followed> {
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
  // Who has seen enough closes it while this waits, and nobody is left to hear of that.
  first.catch(() => undefined)
  try {
    await Promise.race([opened.promise, first])
    yield { event: 'open' }
    const told = await first
    if (told.done === true) return
    yield told.value
    yield* events
  } finally {
    closing.abort()
  }
}

/** Whether it may be over by the next try: a service that restarts, a network that is down. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return RETRY_AFTER_PROBLEMS.includes(error.code)
  // A connection that breaks in the middle of an answer is a TypeError of fetch.
  return error instanceof UnreachableError || error instanceof TypeError
}
