import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { placeOf } from '../place.ts'
import type { RunState } from '../policy/run-state.ts'
import type { Run, Schedule } from '../schedule.ts'
import type { Db, Tx } from '../store/database.ts'
import { listFeedItems, readFeedBounds, type FeedItem } from '../store/feed.ts'
import { findSchedule } from '../store/schedule-records.ts'
import { transactWithin, type Place } from '../store/walled-transaction.ts'
import { checkedCount } from './checked-arguments.ts'
import { cursorOf, isExpired, positionOf, tailOf } from './feed-cursor.ts'

/** What changed: `change` says to what it was brought then, the rest how it is now. */
export type FeedEntry =
  | { readonly kind: 'run'; readonly cursor: string; readonly change: RunState; readonly run: Run }
  | {
      readonly kind: 'schedule'
      readonly cursor: string
      readonly change: string
      readonly scheduleId: string
      /** Null if it has been deleted. */
      readonly schedule: Schedule | null
    }

export interface FeedPage {
  readonly entries: readonly FeedEntry[]
  /** From where to read on, also if there was nothing: then it is nearer to the end than the one before. */
  readonly cursor: string
  /** Whether something may have been missed: then there are no entries, and the cursor is the end of the feed. */
  readonly isExpired: boolean
}

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 500

/**
 * What changed in a project, in the order of transactions, each change once. It can be left and taken up again for some
 * two hours. What is committed comes when no older transaction is under way any more, in this or any other database of the
 * same server: a moment later, unless somebody leaves one open that writes.
 */
export class Feed {
  readonly #db: Db
  readonly #clock: Clock

  constructor({ db, clock = systemClock }: { readonly db: Db; readonly clock?: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /** The cursor from which only what commits later is read, and what was about to. */
  async tail(): Promise<string> {
    return cursorOf(tailOf(await transactWithin(this.#db, this.#clock, null, readFeedBounds)))
  }

  /**
   * @param after a cursor that this gave before
   * @param options limit: 1..500 runs and schedules @default 100
   * @throws CarillonError `invalid_input` for a text that is no cursor
   */
  async read(caller: Caller, after: string, options: { readonly limit?: number } = {}): Promise<FeedPage> {
    const position = positionOf(after)
    const limit = checkedCount(options.limit ?? LIMIT_DEFAULT, LIMIT_MAX, 'limit')
    const place = placeOf(caller)
    return transactWithin(this.#db, this.#clock, place, async (tx) => {
      // First how far, then what: all that is older than this horizon has ended, so whatever snapshot reads it finds it all.
      const bounds = await readFeedBounds(tx)
      const tail = cursorOf(tailOf(bounds))
      if (isExpired(position, bounds)) return { entries: [], cursor: tail, isExpired: true }
      const items = await listFeedItems(tx, { ...place, after: position, horizon: bounds.horizon, limit })
      const last = items.length < limit ? undefined : items.at(-1)
      const cursor = last === undefined ? tail : cursorOf(last.position)
      return { entries: await entriesOf(tx, items, place), cursor, isExpired: false }
    })
  }
}

async function entriesOf(tx: Tx, items: readonly FeedItem[], place: Place): Promise<FeedEntry[]> {
  const schedules = new Map<string, Schedule | null>()
  const entries: FeedEntry[] = []
  for (const item of items) {
    const cursor = cursorOf(item.position)
    if (item.kind === 'run') {
      const { change, run } = item
      if (run !== null) entries.push({ kind: 'run', cursor, change, run })
      continue
    }
    const { change, scheduleId } = item
    if (!schedules.has(scheduleId)) {
      schedules.set(scheduleId, (await findSchedule(tx, { ...place, id: scheduleId })) ?? null)
    }
    entries.push({ kind: 'schedule', cursor, change, scheduleId, schedule: schedules.get(scheduleId) ?? null })
  }
  return entries
}
