import { foundText } from '@carillon/api'

import { invalidInput } from '../kernel/errors.ts'
import { EVENT_LOG_KEPT_MS, type EventLogBounds, type EventLogPosition } from './store/event-log.ts'

const CURSOR = /^(\d{1,20})-(\d{1,19})-(\d{1,10})-(\d{1,16})$/
const XACT_ID_MAX = 2n ** 64n - 1n
const ID_MAX = 2n ** 63n - 1n
const ORDINAL_MAX = 2 ** 31 - 1
/**
 * A cursor expires this long before entries of its age are deleted. An entry gets its time when its transaction begins, but is readable
 * only once the transaction has ended. The slack is longer than the pool lets any transaction run.
 */
const SLACK_MS = 300_000

/** A position in the event log as text. Readers keep it to continue from there. */
export function cursorOf({ xactId, id, ordinal, at }: EventLogPosition): string {
  return [xactId, id, ordinal, at].join('-')
}

/** @throws CarillonError `invalid_input` for a text that is not a cursor */
export function positionOf(cursor: unknown): EventLogPosition {
  const [, xactId, id, ordinal, at] = (typeof cursor === 'string' && CURSOR.exec(cursor)) || []
  if (
    xactId !== undefined &&
    id !== undefined &&
    BigInt(xactId) <= XACT_ID_MAX &&
    BigInt(id) <= ID_MAX &&
    Number(ordinal) <= ORDINAL_MAX
  ) {
    return { xactId, id, ordinal: Number(ordinal), at: Number(at) }
  }
  throw invalidInput([{ path: 'cursor', message: `expected a cursor from the event log, got ${foundText(cursor)}` }])
}

/**
 * The end of the event log: after every entry of a transaction that has ended, before every entry of one that is still open. Open
 * transactions may already have drawn ids, so the position names the last transaction that can add nothing more.
 */
export function tailOf({ horizon, lastId, now }: EventLogBounds): EventLogPosition {
  return { xactId: String(BigInt(horizon) - 1n), id: lastId, ordinal: ORDINAL_MAX, at: now }
}

/**
 * True if entries after this position may have been deleted, or if the position is ahead of the log. The second happens after a
 * restore from a backup, or with a cursor from another database.
 */
export function isExpired(position: EventLogPosition, { horizon, lastId, deletedId, now }: EventLogBounds): boolean {
  const id = BigInt(position.id)
  if (BigInt(position.xactId) >= BigInt(horizon) || id > BigInt(lastId)) return true
  // Ids are not in the order of the log: a deleted entry with a lower id may belong after this position, unless the position is recent.
  if (now - position.at > EVENT_LOG_KEPT_MS - SLACK_MS) return true
  return BigInt(deletedId) > id
}
