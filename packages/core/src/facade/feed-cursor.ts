import { invalidInput } from '../errors.ts'
import { foundText } from '../policy/found-text.ts'
import { FEED_KEPT_MS, type FeedBounds, type FeedPosition } from '../store/feed.ts'

const CURSOR = /^(\d{1,20})-(\d{1,19})-(\d{1,10})-(\d{1,16})$/
const XACT_ID_MAX = 2n ** 64n - 1n
const ID_MAX = 2n ** 63n - 1n
const ORDINAL_MAX = 2 ** 31 - 1
/** Longer than any transaction of a pool lasts: an entry is noted when its transaction begins, and seen when it has ended. */
const SLACK_MS = 300_000

/** A place in the feed as text, for whoever has to come back to it. */
export function cursorOf({ xactId, id, ordinal, at }: FeedPosition): string {
  return [xactId, id, ordinal, at].join('-')
}

/** @throws CarillonError `invalid_input` for a text that is no cursor */
export function positionOf(cursor: unknown): FeedPosition {
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
  throw invalidInput([{ path: 'cursor', message: `expected a cursor as the feed gave it, got ${foundText(cursor)}` }])
}

/**
 * The end of the feed. Behind everything of transactions that had ended, and before everything of those under way, whatever
 * ids they have drawn: so it names the last transaction of which nothing more can come, and the last item of its last entry.
 */
export function tailOf({ horizon, lastId, now }: FeedBounds): FeedPosition {
  return { xactId: String(BigInt(horizon) - 1n), id: lastId, ordinal: ORDINAL_MAX, at: now }
}

/**
 * Whether entries behind a place may have been forgotten, or never were: a place of another database, or of one that was
 * set back, says nothing about this one.
 */
export function isExpired(position: FeedPosition, { horizon, lastId, forgottenId, now }: FeedBounds): boolean {
  const id = BigInt(position.id)
  if (BigInt(position.xactId) >= BigInt(horizon) || id > BigInt(lastId)) return true
  // Ids are not in the order of commits: one below this place may belong behind it. By its age alone it cannot be missed.
  if (now - position.at > FEED_KEPT_MS - SLACK_MS) return true
  return BigInt(forgottenId) > id
}
