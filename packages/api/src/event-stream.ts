import { feedEvents, type FeedEvent, type FeedEventName } from './schemas/feed.ts'

/**
 * Reads server-sent events as browsers do, from chunks that may end anywhere. What is not complete when the stream ends is
 * left out: whoever asks again after the last id gets it whole.
 * @param onPosition told of every id, also of one that comes without an event: nothing before it is missing
 */
export async function* readEventStream(
  stream: ReadableStream<Uint8Array>,
  onPosition: (lastEventId: string) => void = () => undefined,
): AsyncGenerator<FeedEvent, void, undefined> {
  const decoder = new TextDecoder()
  const parser = new EventParser(onPosition)
  // Not `for await`: not every browser can iterate a stream.
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      for (const line of parser.linesOf(decoder.decode(value, { stream: true }))) {
        const event = parser.read(line)
        if (event !== undefined) yield event
      }
    }
  } finally {
    // Lets the service know that nobody listens any more, should the caller have left in between.
    await reader.cancel().catch(() => undefined)
  }
}

/** Collects lines into events: fields, ended by an empty line. A comment begins with a colon. */
class EventParser {
  #rest = ''
  #isAfterReturn = false
  #lastId = ''
  #name = ''
  #data: string[] = []
  #position = ''
  readonly #onPosition: (lastEventId: string) => void

  constructor(onPosition: (lastEventId: string) => void) {
    this.#onPosition = onPosition
  }

  /** Gives the event that a line completes, if it does. */
  read(line: string): FeedEvent | undefined {
    if (line !== '') {
      this.#readField(line)
      return undefined
    }
    if (this.#lastId !== this.#position) {
      this.#position = this.#lastId
      this.#onPosition(this.#lastId)
    }
    return this.#take()
  }

  /** Lines end with LF, CR or both; the two may come in different chunks. */
  linesOf(text: string): string[] {
    const isHalfEnding = this.#isAfterReturn && text.startsWith('\n')
    if (text !== '') this.#isAfterReturn = text.endsWith('\r')
    const lines = (this.#rest + (isHalfEnding ? text.slice(1) : text)).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() ?? ''
    return lines
  }

  #readField(line: string): void {
    const [, name = line, value = ''] = /^([^:]*):\x20?([^]*)$/.exec(line) ?? []
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#name = value
    else if (name === 'id') this.#lastId = value
  }

  /** Undefined for what carries no data, such as a comment, and for events that this version does not know. */
  #take(): FeedEvent | undefined {
    const [name, data] = [this.#name, this.#data]
    this.#name = ''
    this.#data = []
    if (data.length === 0 || !isEventName(name)) return undefined
    // The service says what it documents: a test holds its events against these schemas.
    return { id: this.#lastId, event: name, data: JSON.parse(data.join('\n')) as unknown } as FeedEvent
  }
}

function isEventName(name: string): name is FeedEventName {
  return Object.hasOwn(feedEvents, name)
}
