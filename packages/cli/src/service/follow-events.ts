import {
  ApiError,
  RETRY_AFTER_PROBLEMS,
  UnreachableError,
  type Client,
  type LiveEvent,
  type TranscriptEvent,
} from '@carillon/api'

import type { Cli } from '../process/cli.ts'
import { connect } from './connect.ts'

/** An event of the server; or `open`, each time a connection is established: from then on no event is missed. */
type Followed<Event> = Event | { readonly event: 'open' }

/** Where a connection begins, and what is called with each position. */
interface StreamFrom {
  readonly lastEventId: string | undefined
  readonly onPosition: (position: string) => void
}

/** Opens one connection to a stream. */
type Source<Event> = (client: Client, from: StreamFrom) => AsyncGenerator<Event, void, undefined>

interface FollowOptions {
  /** Start after this event. @default where the stream begins by itself */
  readonly lastEventId?: string
  /** Stops following. */
  readonly signal: AbortSignal
  /** Called before each reconnect, with the delay. */
  readonly onBreak?: (waitMs: number) => void
}

const WAIT_FIRST_MS = 500
const WAIT_MAX_MS = 15_000

/** Follows the events of the project. */
export function followEvents(cli: Cli, options: FollowOptions): AsyncGenerator<Followed<LiveEvent>> {
  return follow(cli, options, (client, from) => client.events(from))
}

/** Follows what a run records. After `end` the caller stops. */
export function followTranscript(
  cli: Cli,
  runId: string,
  options: FollowOptions,
): AsyncGenerator<Followed<TranscriptEvent>> {
  return follow(cli, options, (client, from) => client.runs.followTranscript(runId, from))
}

/**
 * Follows a stream until the signal aborts. If the connection breaks, reconnects with backoff and continues after the last
 * event seen. Throws if the first connection fails, because then the URL or the key is wrong and waiting does not help. Throws if
 * a later one fails for a reason that does not pass, such as a revoked key.
 */
async function* follow<Event extends { readonly event: string }>(
  cli: Cli,
  options: FollowOptions,
  source: Source<Event>,
): AsyncGenerator<Followed<Event>> {
  const { signal, onBreak } = options
  let { lastEventId } = options
  let waitMs = WAIT_FIRST_MS
  let hasBeenOpen = false
  while (!signal.aborted) {
    try {
      const onPosition = (position: string): void => {
        lastEventId = position
      }
      for await (const followed of openStream(cli, (client) => source(client, { lastEventId, onPosition }), signal)) {
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
async function* openStream<Event>(
  cli: Cli,
  open: (client: Client) => AsyncGenerator<Event, void, undefined>,
  signal: AbortSignal,
): AsyncGenerator<Followed<Event>> {
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
  const events = open(client)
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
