import { FailureRecord, FORGET_AFTER_MS, systemClock, type Events } from '@carillon/core'

/** What works by itself behind the API, so that its failures reach no caller. */
export interface ServerParts {
  readonly pool: FailureRecord
  /** Reads the feed for those who follow events. */
  readonly feed: FailureRecord
}

export function createServerParts(events: Events): ServerParts {
  const deps = { clock: systemClock, events }
  return {
    pool: new FailureRecord(deps, { name: 'api pool' }, FORGET_AFTER_MS),
    feed: new FailureRecord(deps, { name: 'feed' }, FORGET_AFTER_MS),
  }
}
