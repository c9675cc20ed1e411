import { sql } from 'kysely'

import type { Caller } from '../caller.ts'
import type { RunState } from '../policy/run-state.ts'
import type { Run } from '../schedule.ts'
import type { Db, Tx } from './database.ts'
import { RUN_COLUMNS, toRun, type RunRow } from './run-records.ts'

/** For how long entries are kept. Whoever was away for longer reads the ledger instead. */
export const FEED_KEPT_MS = 2 * 3_600_000

/** A place in the feed: behind one item of one entry. Ids are decimal, for they may exceed what a number holds. */
export interface FeedPosition {
  readonly xactId: string
  readonly id: string
  /** Counted from 1 within the entry. */
  readonly ordinal: number
  /** When the item was noted. */
  readonly at: number
}

/** What is in the feed at this moment. */
export interface FeedBounds {
  /** The oldest transaction that is still under way: what is older than it will not change any more. */
  readonly horizon: string
  /** The last id that was drawn, whether its entry is to be seen or not; 0 if none was. */
  readonly lastId: string
  /** The last id up to which entries have been forgotten; 0 if none has. */
  readonly forgottenId: string
  readonly now: number
}

export async function readFeedBounds(tx: Tx): Promise<FeedBounds> {
  const { rows } = await sql<{ horizon: string; last_id: string; forgotten_id: string; now: Date }>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as horizon,
      (select case when is_called then last_value else 0 end from carillon.feed_entries_id_seq)::text as last_id,
      (select floor.forgotten_id from carillon.feed_floor as floor)::text as forgotten_id,
      now() as now`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres told nothing of the feed')
  return { horizon: row.horizon, lastId: row.last_id, forgottenId: row.forgotten_id, now: row.now.getTime() }
}

/** One run or schedule of an entry. */
export type FeedItem = { readonly position: FeedPosition } & (
  | { readonly kind: 'run'; readonly change: RunState; readonly run: Run | null }
  | { readonly kind: 'schedule'; readonly change: string; readonly scheduleId: string }
)

/** The columns of the run are null for a schedule, and for a run whose month was dropped meanwhile. */
interface ItemRow extends RunRow {
  xact_id: string
  feed_id: string
  ordinal: number
  noted_at: Date
  kind: 'run' | 'schedule'
  item_schedule_id: string
  change: string
}

/**
 * What a project's feed holds behind a place, in the order of transactions: runs as they are now, with the state that each
 * was brought to then. Nothing of a transaction that is not older than the horizon, though it be committed: an older one
 * may yet commit, and would be passed by. Serves `feed_entries_project_idx`; the run is looked up by its key, one by one,
 * whatever the planner thinks of how many there are.
 */
export async function listFeedItems(
  tx: Tx,
  p: Pick<Caller, 'tenantId' | 'projectId'> & { after: FeedPosition; horizon: string; limit: number },
): Promise<FeedItem[]> {
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
 * Forgets entries that were noted before an instant, and remembers up to where; returns how many. Not those that nobody can
 * have read yet, because an older transaction is still under way.
 */
export async function deleteFeedEntries(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with forgotten as (
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
      set forgotten_id = greatest(feed_floor.forgotten_id, (select max(forgotten.id) from forgotten))
      where exists (select from forgotten)
    )
    select count(*)::int as count from forgotten`.execute(db)
  return rows[0]?.count ?? 0
}

function toItem(row: ItemRow): FeedItem {
  const { kind, change } = row
  const position = { xactId: row.xact_id, id: row.feed_id, ordinal: row.ordinal, at: row.noted_at.getTime() }
  if (kind === 'schedule') return { kind, position, change, scheduleId: row.item_schedule_id }
  const isForgotten = (row.id as string | null) === null
  // The trigger that writes runs writes their states.
  return { kind, position, change: change as RunState, run: isForgotten ? null : toRun(row) }
}
