import { naming } from '../field-names.ts'
import type { HandlersOf } from '../handler.ts'

export const eventHandlers: HandlersOf<'followEvents'> = {
  followEvents: async ({ service: { feedHub }, identity, headers, query, isStillAllowed }) => {
    // What a browser sends by itself when it comes back is newer than what its URL says.
    const isInHeader = headers['last-event-id'] !== undefined
    const lastEventId = headers['last-event-id'] ?? query.after
    const body = await naming({ cursor: isInHeader ? 'Last-Event-ID' : 'query.after' }, () =>
      feedHub.follow({ identity, lastEventId, isStillAllowed }),
    )
    return { body, headers: { 'x-accel-buffering': 'no' } }
  },
}
