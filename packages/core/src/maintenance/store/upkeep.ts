import { columns, instant } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { activeLanes } from '../../db/indexed-sql.ts'
import { sql } from '../../db/sql.ts'

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
 * Deletes the rows of schedules that users deleted before an instant, with their revisions, changes, backlogs and own grants. One
 * statement, because foreign keys are checked at its end. Skips schedules that another transaction has locked.
 * @returns how many schedules
 */
export async function deleteExpiredSchedules(db: Db | Tx, p: { deletedBefore: Date; limit: number }): Promise<number> {
  const rows = await sql`
    with expired as materialized (
      select schedules.id
      from schedules
      where schedules.state = 'deleted' and schedules.deleted_at < ${p.deletedBefore}
      order by schedules.deleted_at
      limit ${p.limit}
      for update skip locked
    ), revisions as (
      delete from schedule_revisions
      using expired
      where schedule_revisions.schedule_id = expired.id
    ), backlogs as (
      delete from slot_backlogs
      using expired
      where slot_backlogs.schedule_id = expired.id
    ), changes as (
      delete from schedule_changes
      using expired
      where schedule_changes.schedule_id = expired.id
    ), grants as (
      delete from execution_grants
      using expired
      where execution_grants.schedule_id = expired.id
    )
    delete from schedules
    using expired
    where schedules.id = expired.id
    returning schedules.id`.execute(db)
  return rows.length
}
