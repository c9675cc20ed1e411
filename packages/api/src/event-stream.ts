import { createParser } from 'eventsource-parser'

import { liveEvents, type LiveEvent } from './schemas/event.ts'

/** What a chunk of the stream completes: an event, or a position up to which the client has missed nothing. */
type Progress = { readonly position: string } | UnreadEvent

/** An event whose data is still JSON text. */
interface UnreadEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** An event of a stream, by its name. */
interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: unknown
}

/**
 * Reads the events of a stream of server-sent events. An event that the end of the stream cuts off is dropped: a client that
 * reconnects after the last position receives it whole. If the data of an event is no JSON, this throws after all earlier events.
 *
 * @param onPosition called with every id before its event, and with ids that come without an event
 * @param schemas the data of the events by their names: events of other names are dropped. @default those of a project
 */
export async function* readEventStream<Event extends StreamEvent = LiveEvent>(
  stream: ReadableStream<Uint8Array>,
  onPosition: (lastEventId: string) => void = () => undefined,
  schemas: { readonly [Name in Event['event']]: unknown } = liveEvents as never,
): AsyncGenerator<Event, void, undefined> {
  const decoder = new TextDecoder()
  const progressOf = createReader((name) => Object.hasOwn(schemas, name))
  // Not `for await`: some browsers cannot iterate a stream.
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      for (const progress of progressOf(decoder.decode(value, { stream: true }))) {
        // The cast holds because tests of the server validate its events against these schemas.
        if ('event' in progress) yield readEvent(progress) as Event
        else onPosition(progress.position)
      }
    }
  } finally {
    // Closes the connection if the caller stops reading before the end.
    await reader.cancel().catch(() => undefined)
  }
}

/** Returns a function that lists in order what a chunk completes. The parser itself only calls back for each piece. */
function createReader(isKnown: (name: string) => boolean): (chunk: string) => Progress[] {
  let lastId = ''
  let completed: Progress[] = []
  const parser = createParser({
    onId: (id) => {
      if (id === lastId) return
      lastId = id
      completed.push({ position: id })
    },
    onEvent: ({ event, data }) => {
      // Drops an event whose name this release does not know.
      if (event === undefined || !isKnown(event)) return
      completed.push({ id: lastId, event, data })
    },
  })
  return (chunk) => {
    completed = []
    parser.feed(chunk)
    return completed
  }
}

function readEvent({ id, event, data }: UnreadEvent): StreamEvent {
  return { id, event, data: JSON.parse(data) as unknown }
}
