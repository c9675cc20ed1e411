/** Where a stream of server-sent events continues, and the field of the request that says so. */
export interface StreamPosition {
  readonly lastEventId: string | undefined
  readonly field: string
}

/** On a reconnect a browser repeats the URL and adds the header, so the header is newer. */
export function streamPosition(
  headers: { readonly 'last-event-id'?: string | undefined },
  query: { readonly after?: string | undefined },
): StreamPosition {
  const inHeader = headers['last-event-id']
  return inHeader === undefined
    ? { lastEventId: query.after, field: 'query.after' }
    : { lastEventId: inHeader, field: 'Last-Event-ID' }
}

/** Headers of a stream: nginx passes each event on at once. */
export const UNBUFFERED = { 'x-accel-buffering': 'no' }
