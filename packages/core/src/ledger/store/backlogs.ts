import { RUN_REASONS, type RunReason } from '@carillon/api'

import { columns, double, instant, integer, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { instantsText, instantText } from '../../db/parameters.ts'
import { CADENCE_TEXT } from '../../db/shared-columns.ts'
import { sql } from '../../db/sql.ts'
import { NIL_UUID } from '../../kernel/ids.ts'

/* In every function, `now` is null in production: Postgres' own clock decides (I10). A test passes an instant. */

/** Identifies a backlog: one change of a schedule leaves at most one. */
export interface BacklogKey {
  readonly scheduleId: string
  /** The revision under which the slots came due. */
  readonly revision: number
  /** The backlog holds no slot after this instant. */
  readonly until: number
}

/** Slots of a schedule that came due before a change, and whose lines are still to be written. */
export interface NewBacklog extends BacklogKey {
  readonly tenantId: string
  readonly projectId: string
  /** The first slot without a line. */
  readonly nextSlotAt: number
  /** The reason that its lines give; the line of an excluded slot says `excluded`. */
  readonly reason: RunReason
  readonly excludedSlots: readonly number[]
}

export interface SlotBacklog extends NewBacklog {
  /** JSON text; null if the revision was removed. */
  readonly cadence: string | null
}

/** How far the lines of a backlog have been written. */
export interface BacklogProgress {
  readonly backlog: SlotBacklog
  /** The first slot that still lacks its line; null if none does. */
  readonly next: number | null
}

/** Records backlogs. Call in the transaction of the change, with the schedules locked. */
export async function insertBacklogs(
  tx: Tx,
  p: { readonly backlogs: readonly NewBacklog[]; readonly now: Date | null },
): Promise<void> {
  const { backlogs } = p
  await sql`
    insert into slot_backlogs (
      schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, excluded_slots, made_at
    )
    select backlog.schedule_id, backlog.revision, backlog.until, backlog.tenant_id, backlog.project_id, backlog.next_slot_at,
      backlog.reason, nullif(backlog.excluded_slots, '')::timestamptz[], ${nowOf(p.now)}
    from unnest(
      ${backlogs.map(({ scheduleId }) => scheduleId)}::uuid[],
      ${backlogs.map(({ revision }) => revision)}::integer[],
      ${backlogs.map(({ until }) => instantText(until))}::timestamptz[],
      ${backlogs.map(({ tenantId }) => tenantId)}::text[],
      ${backlogs.map(({ projectId }) => projectId)}::text[],
      ${backlogs.map(({ nextSlotAt }) => instantText(nextSlotAt))}::timestamptz[],
      ${backlogs.map(({ reason }) => reason)}::run_reason[],
      ${backlogs.map(({ excludedSlots }) => instantsText(excludedSlots))}::text[]
    ) as backlog(schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, excluded_slots)`.execute(tx)
}

const BACKLOG_COLUMNS = columns('backlogs', {
  scheduleId: uuid,
  revision: integer,
  until: instant,
  tenantId: text,
  projectId: text,
  nextSlotAt: instant,
  reason: word('run_reason', RUN_REASONS),
  excludedSlots: instant.list.orNull,
  cadence: CADENCE_TEXT.orNull,
})

/**
 * The backlogs that follow a key (null: from the first), of some schedules (null: of all), with the cadences that say which slots they
 * hold.
 */
export async function listBacklogs(
  db: Db | Tx,
  p: { readonly scheduleIds: readonly string[] | null; readonly after: BacklogKey | null; readonly limit: number },
): Promise<SlotBacklog[]> {
  const { after } = p
  const rows = await sql`
    select ${BACKLOG_COLUMNS}
    from slot_backlogs as backlogs
    left join schedule_revisions as revisions
      on revisions.schedule_id = backlogs.schedule_id and revisions.revision = backlogs.revision
    where (backlogs.schedule_id, backlogs.revision, backlogs.until)
        > (${after?.scheduleId ?? NIL_UUID}::uuid, ${after?.revision ?? 0}::integer, ${instantText(after?.until ?? 0)}::timestamptz)
      ${p.scheduleIds === null ? sql`` : sql`and backlogs.schedule_id = any(${p.scheduleIds}::uuid[])`}
    order by backlogs.schedule_id, backlogs.revision, backlogs.until
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ ...row, excludedSlots: row.excludedSlots ?? [] }))
}

/** For how long the oldest backlog has waited for its lines, in milliseconds; null if there is none. */
export async function ageOfOldestBacklog(db: Db, p: { readonly now: Date | null }): Promise<number | null> {
  const age = sql`extract(epoch from ${nowOf(p.now)} - min(backlogs.made_at))::float8 * 1000`
  const [row] = await sql`
    select ${columns('backlogs', { ageMs: double.orNull.as(age) })}
    from slot_backlogs as backlogs`.execute(db)
  const ageMs = row?.ageMs ?? null
  return ageMs === null ? null : Math.max(0, ageMs)
}

const MOVED_COLUMNS = columns('moved', { ordinal: integer.as(sql`moved.ordinal::integer`) })

/**
 * Sets each backlog to its next slot that lacks a line, and deletes backlogs that have none left. A backlog that has changed since it
 * was read is left alone: another writer has moved it, or its project was purged. Call with the schedules locked.
 * @returns the moves that were made
 */
export async function moveBacklogs<Move extends BacklogProgress>(
  tx: Tx,
  p: { readonly moves: readonly Move[] },
): Promise<Move[]> {
  const { moves } = p
  const isThatOne = sql`
    backlogs.schedule_id = move.schedule_id and backlogs.revision = move.revision and backlogs.until = move.until
      and backlogs.next_slot_at = move.next_slot_at`
  const rows = await sql`
    with move as (
      select *
      from unnest(
        ${moves.map(({ backlog }) => backlog.scheduleId)}::uuid[],
        ${moves.map(({ backlog }) => backlog.revision)}::integer[],
        ${moves.map(({ backlog }) => instantText(backlog.until))}::timestamptz[],
        ${moves.map(({ backlog }) => instantText(backlog.nextSlotAt))}::timestamptz[],
        ${moves.map(({ next }) => instantText(next))}::timestamptz[]
      ) with ordinality as move(schedule_id, revision, until, next_slot_at, following_at, ordinal)
    ), moved as (
      update slot_backlogs as backlogs
      set next_slot_at = move.following_at
      from move
      where ${isThatOne} and move.following_at is not null
      returning move.ordinal
    ), removed as (
      delete from slot_backlogs as backlogs
      using move
      where ${isThatOne} and move.following_at is null
      returning move.ordinal
    )
    select ${MOVED_COLUMNS} from moved
    union all
    select removed.ordinal::integer from removed`.execute(tx)
  const made = new Set(rows.map(({ ordinal }) => ordinal))
  return moves.filter((_move, index) => made.has(index + 1))
}
