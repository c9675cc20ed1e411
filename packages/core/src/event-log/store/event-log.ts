import type { RunState, ScheduleChangeKind } from '@carillon/api'

import { columns, instant, integer, text, uuid, word, type RowFrom } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { RUN_COLUMNS } from '../../db/shared-columns.ts'
import { sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { Run } from '../../ledger/records.ts'

/** For how long entries are kept. A reader that was away for longer has to read the ledger instead. */
export const EVENT_LOG_KEPT_MS = 2 * 3_600_000

/** A position in the log: after one item of one row. Ids are decimal text because they may exceed what a number holds. */
export interface EventLogPosition {
  readonly xactId: string
  readonly id: string
  /** Counted from 1 within the row. */
  readonly ordinal: number
  /** When the transaction of the row began, in epoch milliseconds. */
  readonly at: number
}

/** The bounds that say which entries are readable now. */
export interface EventLogBounds {
  /** The oldest transaction that is still open. Every older one has ended. */
  readonly horizon: string
  /** The last id that was drawn, whether its row is visible or not; 0 if none was. */
  readonly lastId: string
  /** The highest id that was deleted; 0 if none was. */
  readonly deletedId: string
  readonly now: number
}

const BOUNDS_COLUMNS = columns('bounds', {
  horizon: text.as(sql`pg_snapshot_xmin(pg_current_snapshot())::text`),
  lastId: text.as(sql`(select case when is_called then last_value else 0 end from feed_entries_id_seq)::text`),
  deletedId: text.as(sql`(select floor.forgotten_id from feed_floor as floor)::text`),
  now: instant.as(sql`now()`),
})

export async function readEventLogBounds(tx: Tx): Promise<EventLogBounds> {
  const [bounds] = await sql`select ${BOUNDS_COLUMNS}`.execute(tx)
  if (bounds === undefined) throw new Error('expected one row with the bounds of the event log, got none')
  return bounds
}

/** One run or schedule that a row of the log names. */
export type EventLogItem = { readonly position: EventLogPosition } & (
  | { readonly kind: 'run'; readonly change: RunState; readonly run: Run | null }
  | { readonly kind: 'schedule'; readonly change: ScheduleChangeKind; readonly scheduleId: string }
)

/** The columns of the run are null for a schedule, and for a run whose month has been dropped. */
const ITEM_COLUMNS = RUN_COLUMNS.orNull.with('items', {
  xactId: text.as(sql`items.xact_id::text`),
  feedId: text.as(sql`items.id::text`),
  ordinal: integer.as(sql`items.ordinal::int`),
  notedAt: instant,
  kind: word('feed_kind', ['run', 'schedule']),
  itemScheduleId: uuid.as(sql`items.schedule_id`),
  change: text,
})

/**
 * The items of a project after a position, in the order of transactions. A run is read as it is now, beside the state that it had
 * after the change. Rows of transactions at or above the horizon are left out even if committed: an older transaction may still
 * commit, and its rows would be skipped. Reads `feed_entries_project_idx`. The lateral join looks up each run by its key, whatever
 * row count the planner expects.
 */
export async function listEventLogItems(
  tx: Tx,
  p: Scope & { after: EventLogPosition; horizon: string; limit: number },
): Promise<EventLogItem[]> {
  const { after } = p
  const rows = await sql`
    with items as materialized (
      select entries.xact_id, entries.id, item.ordinal, entries.noted_at, entries.kind, item.schedule_id, item.slot,
        item.change
      from feed_entries as entries
      cross join lateral unnest(entries.schedule_ids, entries.slots, entries.changes)
        with ordinality as item(schedule_id, slot, change, ordinal)
      where entries.tenant_id = ${p.tenantId} and entries.project_id = ${p.projectId}
        and (entries.xact_id, entries.id) >= (${after.xactId}::xid8, ${after.id}::bigint)
        and entries.xact_id < ${p.horizon}::xid8
        and (entries.xact_id, entries.id, item.ordinal) >
          (${after.xactId}::xid8, ${after.id}::bigint, ${after.ordinal}::bigint)
      order by entries.xact_id, entries.id, item.ordinal
      limit ${p.limit}
    )
    select ${ITEM_COLUMNS}
    from items
    left join lateral (
      select runs.*
      from runs
      where runs.schedule_id = items.schedule_id and runs.scheduled_for = items.slot
        and runs.tenant_id = ${p.tenantId} and runs.project_id = ${p.projectId}
      limit 1
    ) as runs on true
    order by items.xact_id, items.id, items.ordinal`.execute(tx)
  return rows.map(toItem)
}

/**
 * Deletes entries from before an instant, and stores the highest deleted id. Keeps entries that no reader can see yet because an
 * older transaction is open.
 * @returns how many were deleted
 */
export async function deleteEventLogEntries(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const [deleted] = await sql`
    with deleted as (
      delete from feed_entries as entries
      where entries.id = any(array(
        select old.id
        from feed_entries as old
        where old.noted_at < ${p.before} and old.xact_id < pg_snapshot_xmin(pg_current_snapshot())
        order by old.id
        limit ${p.limit}
      ))
      returning entries.id
    ), floor as (
      update feed_floor
      set forgotten_id = greatest(feed_floor.forgotten_id, (select max(deleted.id) from deleted))
      where exists (select from deleted)
    )
    select ${columns('deleted', { count: integer.as(sql`count(*)::int`) })} from deleted`.execute(db)
  return deleted?.count ?? 0
}

/** Triggers write `change`: the state of a run, or what happened to a schedule. */
function toItem(row: RowFrom<typeof ITEM_COLUMNS>): EventLogItem {
  const { xactId, feedId, ordinal, notedAt, kind, itemScheduleId, change, ...run } = row
  const position = { xactId, id: feedId, ordinal, at: notedAt }
  if (kind === 'schedule') {
    return { kind, position, change: change as ScheduleChangeKind, scheduleId: itemScheduleId }
  }
  // The run's month was dropped, or it has all columns.
  return { kind, position, change: change as RunState, run: run.id === null ? null : (run as Run) }
}
