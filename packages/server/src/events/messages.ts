import type { LiveEvent } from '@carillon/api'
import type { Clock, EventLogEntry } from '@carillon/core'

import { wallNow } from '../clock.ts'

/** Converts an entry of the event log to the event that clients receive. `now` is in epoch milliseconds. */
export type ToEvent = (entry: EventLogEntry, now: number) => LiveEvent

/** One change as a server-sent event. */
export interface EventMessage {
  /** The position right after this change; the same for every client. */
  readonly cursor: string
  readonly text: string
}

/** Renders entries of the event log, all with the same current time. */
export type RenderEntries = (entries: readonly EventLogEntry[]) => EventMessage[]

/** The first line of a stream: how many milliseconds a browser waits before it reconnects. */
export const RETRY_TEXT = 'retry: 2000\n'

export function createRenderer(clock: Clock, toEvent: ToEvent): RenderEntries {
  return (entries) => {
    const now = wallNow(clock)
    return entries.map((entry) => ({ cursor: entry.cursor, text: eventText(toEvent(entry, now)) }))
  }
}

/** The first text of a stream. Its id comes without data, so it is no event, but a browser remembers the id and resumes there. */
export function openingText(cursor: string): string {
  return `${RETRY_TEXT}id: ${cursor}\n\n`
}

/** Tells the client that the events between its own cursor and this one are no longer stored. */
export function resetText(cursor: string): string {
  const reason = 'events since then are no longer stored: reload what you show'
  return eventText({ id: cursor, event: 'reset', data: { reason } })
}

/**
 * A comment of the event stream, which keeps proxies from closing an idle connection. It carries the client's position, because
 * the cursor of the last event would expire in a project where nothing happens for hours.
 * @param cursor undefined while events before the poller's position are still to be sent to the client
 */
export function heartbeatText(cursor: string | undefined): string {
  return cursor === undefined ? ': still here\n\n' : `: still here\nid: ${cursor}\n\n`
}

/** JSON contains no raw line breaks, so the data is one line. */
function eventText({ id, event, data }: LiveEvent): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
