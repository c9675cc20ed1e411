import { createClient, type LiveEvent } from '@carillon/api'

import { ADMIN_KEY } from '../http/test-app.ts'

/** Follows events over a real connection until it is disposed. */
export class EventReader implements AsyncDisposable {
  readonly #abort = new AbortController()
  readonly #events: AsyncGenerator<LiveEvent, void, undefined>

  constructor(url: string, options: { readonly key?: string; readonly lastEventId?: string } = {}) {
    const { key = ADMIN_KEY, ...from } = options
    this.#events = createClient(url, key, { signal: this.#abort.signal }).events(from)
  }

  async next(): Promise<LiveEvent> {
    const event = await this.#events.next()
    if (event.done === true) throw new Error('the stream has ended')
    return event.value
  }

  async take(count: number): Promise<LiveEvent[]> {
    const events: LiveEvent[] = []
    while (events.length < count) events.push(await this.next())
    return events
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    // The iterator may be waiting for the next event.
    await this.#events.return().catch(() => undefined)
  }
}

/** What an event is about, as one line that tests can compare. */
export function summaryOf({ event, data }: LiveEvent): string {
  switch (event) {
    case 'run':
      return `run ${data.change} ${data.run.id}`
    case 'schedule':
      return `schedule ${data.change} ${data.scheduleId}`
    case 'reset':
      return 'reset'
  }
}
