import { columns, instant, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { activeLanes } from '../../db/indexed-sql.ts'
import { sql, type Sql } from '../../db/sql.ts'

/** The earliest instant at which an active schedule is due; null if none is active. Reads one schedule per lane. */
export async function findOldestDue(db: Db): Promise<number | null> {
  const [row] = await sql`
    with recursive ${activeLanes()}
    select ${columns('first', { oldest: instant.orNull.as(sql`min(first.due_at)`) })}
    from lanes
    cross join lateral (
      select schedules.due_at
      from schedules
      where schedules.state = 'active' and schedules.lane = lanes.lane
      order by schedules.due_at
      limit 1
    ) as first`.execute(db)
  return row?.oldest ?? null
}

/**
 * Deletes the lines in the history of schedules that name a run (it was requested or cancelled) with a slot before an instant.
 * @returns how many
 */
export async function deleteRunChanges(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const rows = await sql`
    delete from schedule_changes as target
    where target.id = any(array(
      select changes.id
      from schedule_changes as changes
      where changes.scheduled_for < ${p.before}
      order by changes.scheduled_for
      limit ${p.limit}
    ))
    returning true`.execute(db)
  return rows.length
}

/** Locks schedules that users deleted before an instant, the earliest first, and skips those that another transaction has locked. */
export async function lockExpiredSchedules(tx: Tx, p: { deletedBefore: Date; limit: number }): Promise<string[]> {
  const rows = await sql`
    select ${columns('schedules', { id: uuid })}
    from schedules
    where schedules.state = 'deleted' and schedules.deleted_at < ${p.deletedBefore}
    order by schedules.deleted_at
    limit ${p.limit}
    for update skip locked`.execute(tx)
  return rows.map(({ id }) => id)
}

/** Up to `limit` rows of some schedules. */
interface Portion {
  readonly scheduleIds: readonly string[]
  readonly limit: number
}

/**
 * Deletes the earliest lines in the history of each schedule. They go in their order, because an audit would take a history without its end
 * for that of a schedule that still has slots.
 * @returns how many, as the functions below do
 */
export function deleteChangesOf(tx: Tx, p: Portion): Promise<number> {
  return deleteRowsOf(tx, p, { table: sql`schedule_changes`, order: sql`rows.id` })
}

export function deleteRevisionsOf(tx: Tx, p: Portion): Promise<number> {
  return deleteRowsOf(tx, p, { table: sql`schedule_revisions`, order: sql`rows.revision` })
}

export function deleteBacklogsOf(tx: Tx, p: Portion): Promise<number> {
  return deleteRowsOf(tx, p, { table: sql`slot_backlogs`, order: sql`rows.revision` })
}

/** Call it after `deleteRevisionsOf`: each revision refers to a grant. */
export function deleteOwnGrantsOf(tx: Tx, p: Portion): Promise<number> {
  return deleteRowsOf(tx, p, { table: sql`execution_grants`, order: sql`rows.id` })
}

/**
 * `between` and the order by schedule keep Postgres to an index that begins with the schedule. With `=` and a few schedules it may walk the
 * lines of all schedules by their ids instead.
 */
async function deleteRowsOf(
  tx: Tx,
  p: Portion,
  { table, order }: { table: Sql<never>; order: Sql<never> },
): Promise<number> {
  const rows = await sql`
    delete from ${table} as target
    where target.ctid = any(array(
      select first.ctid
      from unnest(${p.scheduleIds}::uuid[]) as expired(id)
      cross join lateral (
        select rows.ctid
        from ${table} as rows
        where rows.schedule_id between expired.id and expired.id
        order by rows.schedule_id, ${order}
        limit ${p.limit}
      ) as first
      limit ${p.limit}
    ))
    returning true`.execute(tx)
  return rows.length
}

/** Deletes schedules that no other row refers to any more. */
export async function deleteSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<void> {
  await sql`delete from schedules where schedules.id = any(${p.scheduleIds}::uuid[])`.execute(tx)
}
