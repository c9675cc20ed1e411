import type { FeedEvent } from '@carillon/api'

/** After which time a browser comes back when its connection breaks. */
const RETRY_MS = 2000

/** How a stream begins. The id alone is no event: a browser keeps it, and comes back after it. */
export function openingText(cursor: string): string {
  return `retry: ${RETRY_MS}\nid: ${cursor}\n\n`
}

/** JSON has no line breaks of its own, so the data is one line. */
export function eventText({ id, event, data }: FeedEvent): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

export function resetText(cursor: string): string {
  const reason = 'what happened since is no longer known: read again what you show'
  return eventText({ id: cursor, event: 'reset', data: { reason } })
}

/**
 * A comment, which keeps the connection and whatever is between alive. With the place that its client has got to: where
 * nothing happens for hours, the place of the last event would be forgotten.
 */
export function heartbeatText(cursor: string | undefined): string {
  return cursor === undefined ? ': still here\n\n' : `: still here\nid: ${cursor}\n\n`
}
