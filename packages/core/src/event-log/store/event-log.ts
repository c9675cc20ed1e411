import type { RunState, ScheduleChangeKind } from '@carillon/api'
import { sql } from 'kysely'

import { RUN_COLUMNS, type RunRow } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import type { Scope } from '../../kernel/scope.ts'
import { toRun, type Run } from '../../ledger/records.ts'

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

export async function readEventLogBounds(tx: Tx): Promise<EventLogBounds> {
  const { rows } = await sql<{ horizon: string; last_id: string; forgotten_id: string; now: Date }>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as horizon,
      (select case when is_called then last_value else 0 end from carillon.feed_entries_id_seq)::text as last_id,
      (select floor.forgotten_id from carillon.feed_floor as floor)::text as forgotten_id,
      now() as now`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected one row with the bounds of the event log, got none')
  return { horizon: row.horizon, lastId: row.last_id, deletedId: row.forgotten_id, now: row.now.getTime() }
}

/** One run or schedule that a row of the log names. */
export type EventLogItem = { readonly position: EventLogPosition } & (
  | { readonly kind: 'run'; readonly change: RunState; readonly run: Run | null }
  | { readonly kind: 'schedule'; readonly change: ScheduleChangeKind; readonly scheduleId: string }
)

/** The columns of the run are null for a schedule, and for a run whose month has been dropped. Triggers write `change`. */
type ItemRow = RunRow & {
  xact_id: string
  feed_id: string
  ordinal: number
  noted_at: Date
  item_schedule_id: string
} & ({ kind: 'run'; change: RunState } | { kind: 'schedule'; change: ScheduleChangeKind })

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
  const { rows } = await sql<ItemRow>`
    with items as materialized (
      select entries.xact_id, entries.id, item.ordinal, entries.noted_at, entries.kind, item.schedule_id, item.slot,
        item.change
      from carillon.feed_entries as entries
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
    select items.xact_id::text as xact_id, items.id::text as feed_id, items.ordinal::int as ordinal, items.noted_at,
      items.kind, items.schedule_id as item_schedule_id, items.change, ${RUN_COLUMNS}
    from items
    left join lateral (
      select runs.*
      from carillon.runs
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
  const { rows } = await sql<{ count: number }>`
    with deleted as (
      delete from carillon.feed_entries as entries
      where entries.id = any(array(
        select old.id
        from carillon.feed_entries as old
        where old.noted_at < ${p.before} and old.xact_id < pg_snapshot_xmin(pg_current_snapshot())
        order by old.id
        limit ${p.limit}
      ))
      returning entries.id
    ), floor as (
      update carillon.feed_floor
      set forgotten_id = greatest(feed_floor.forgotten_id, (select max(deleted.id) from deleted))
      where exists (select from deleted)
    )
    select count(*)::int as count from deleted`.execute(db)
  return rows[0]?.count ?? 0
}

function toItem(row: ItemRow): EventLogItem {
  const position = { xactId: row.xact_id, id: row.feed_id, ordinal: row.ordinal, at: row.noted_at.getTime() }
  if (row.kind === 'schedule') {
    return { kind: row.kind, position, change: row.change, scheduleId: row.item_schedule_id }
  }
  const isDropped = (row.id as string | null) === null
  return { kind: row.kind, position, change: row.change, run: isDropped ? null : toRun(row) }
}
