import { createParser } from 'eventsource-parser'

import { liveEvents, type LiveEvent, type LiveEventName } from './schemas/event.ts'

/** What a chunk of the stream completes: an event, or a position up to which the client has missed nothing. */
type Progress = { readonly position: string } | UnreadEvent

/** An event whose data is still JSON text. */
interface UnreadEvent {
  readonly id: string
  readonly event: LiveEventName
  readonly data: string
}

/**
 * Reads the events of a stream of server-sent events. An event that the end of the stream cuts off is dropped: a client that
 * reconnects after the last position receives it whole. If the data of an event is no JSON, this throws after all earlier events.
 *
 * @param onPosition called with every id before its event, and with ids that come without an event
 */
export async function* readEventStream(
  stream: ReadableStream<Uint8Array>,
  onPosition: (lastEventId: string) => void = () => undefined,
): AsyncGenerator<LiveEvent, void, undefined> {
  const decoder = new TextDecoder()
  const progressOf = createReader()
  // Not `for await`: some browsers cannot iterate a stream.
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      for (const progress of progressOf(decoder.decode(value, { stream: true }))) {
        if ('event' in progress) yield readEvent(progress)
        else onPosition(progress.position)
      }
    }
  } finally {
    // Closes the connection if the caller stops reading before the end.
    await reader.cancel().catch(() => undefined)
  }
}

/** Returns a function that lists in order what a chunk completes. The parser itself only calls back for each piece. */
function createReader(): (chunk: string) => Progress[] {
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
      if (event === undefined || !isEventName(event)) return
      completed.push({ id: lastId, event, data })
    },
  })
  return (chunk) => {
    completed = []
    parser.feed(chunk)
    return completed
  }
}

/** The cast holds because a test of the server validates its events against these schemas. */
function readEvent({ id, event, data }: UnreadEvent): LiveEvent {
  return { id, event, data: JSON.parse(data) as unknown } as LiveEvent
}

function isEventName(name: string): name is LiveEventName {
  return Object.hasOwn(liveEvents, name)
}
