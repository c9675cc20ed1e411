import { EVENT_LOG_ENTRIES, expected, wholeNumber, type RunState, type ScheduleChangeKind } from '@carillon/api'
import { z } from 'zod'

import type { Db, Tx } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import type { Run, Schedule } from '../ledger/records.ts'
import { findSchedule } from '../schedules/reads.ts'
import { cursorOf, isExpired, positionOf, tailOf } from './cursor.ts'
import { listEventLogItems, readEventLogBounds, type EventLogItem } from './store/event-log.ts'

export { EVENT_LOG_KEPT_MS, deleteEventLogEntries } from './store/event-log.ts'

/** One change: `change` is what happened then, `run` or `schedule` is how it is now. */
export type EventLogEntry =
  | { readonly kind: 'run'; readonly cursor: string; readonly change: RunState; readonly run: Run }
  | {
      readonly kind: 'schedule'
      readonly cursor: string
      readonly change: ScheduleChangeKind
      readonly scheduleId: string
      /** Null if the schedule has been deleted. */
      readonly schedule: Schedule | null
    }

export interface EventLogPage {
  readonly entries: readonly EventLogEntry[]
  /** Where the next read continues. It moves forward even if this page is empty. */
  readonly cursor: string
  /** True if entries may have been missed. Then `entries` is empty and `cursor` is the end of the log. */
  readonly isExpired: boolean
}

const READ_OPTIONS = z.strictObject(
  {
    /** At most `EVENT_LOG_ENTRIES.max`. @default `EVENT_LOG_ENTRIES.default` */
    limit: wholeNumber(EVENT_LOG_ENTRIES).optional(),
  },
  expected('an object'),
)

/**
 * What changed in a project, in the order of Postgres' transaction ids, each change once. A reader can continue from its cursor for
 * about two hours.
 *
 * A committed change becomes readable when no older transaction is open on the Postgres server, in any of its databases. Usually
 * that is a moment later; a transaction that writes and stays open delays it.
 */
export class EventLog {
  readonly #db: Db
  readonly #clock: Clock

  constructor({ db, clock = systemClock }: { readonly db: Db; readonly clock?: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /** A cursor at the end of the log: a read from it returns only changes that become readable after this call. */
  async tail(): Promise<string> {
    return cursorOf(tailOf(await transactScoped(this.#db, this.#clock, null, readEventLogBounds)))
  }

  /**
   * @param after a cursor from `tail` or an earlier page
   * @throws CarillonError `invalid_input` for a text that is not a cursor
   */
  async read(caller: Caller, after: string, options: z.input<typeof READ_OPTIONS> = {}): Promise<EventLogPage> {
    const position = positionOf(after)
    const { limit = EVENT_LOG_ENTRIES.default } = checkedObject(options, READ_OPTIONS)
    const scope = scopeOf(caller)
    return transactScoped(this.#db, this.#clock, scope, async (tx) => {
      // Read the horizon before the items: every transaction below it has ended, so any later snapshot sees all of its entries.
      const bounds = await readEventLogBounds(tx)
      const tail = cursorOf(tailOf(bounds))
      if (isExpired(position, bounds)) return { entries: [], cursor: tail, isExpired: true }
      const items = await listEventLogItems(tx, { ...scope, after: position, horizon: bounds.horizon, limit })
      const last = items.length < limit ? undefined : items.at(-1)
      const cursor = last === undefined ? tail : cursorOf(last.position)
      return { entries: await entriesOf(tx, items, scope), cursor, isExpired: false }
    })
  }
}

async function entriesOf(tx: Tx, items: readonly EventLogItem[], scope: Scope): Promise<EventLogEntry[]> {
  const schedules = new Map<string, Schedule | null>()
  const entries: EventLogEntry[] = []
  for (const item of items) {
    const cursor = cursorOf(item.position)
    if (item.kind === 'run') {
      const { change, run } = item
      if (run !== null) entries.push({ kind: 'run', cursor, change, run })
      continue
    }
    const { change, scheduleId } = item
    if (!schedules.has(scheduleId)) {
      schedules.set(scheduleId, (await findSchedule(tx, { ...scope, id: scheduleId })) ?? null)
    }
    entries.push({ kind: 'schedule', cursor, change, scheduleId, schedule: schedules.get(scheduleId) ?? null })
  }
  return entries
}
