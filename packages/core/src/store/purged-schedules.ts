import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/**
 * Removes schedules for good that were deleted before an instant, with their revisions, changes, backlogs and own grants;
 * returns how many. One statement for all of it: their keys are checked at its end. A locked one is being read; it goes the next time.
 */
export async function purgeSchedules(db: Db | Tx, p: { deletedBefore: Date; limit: number }): Promise<number> {
  const { rows } = await sql`
    with doomed as materialized (
      select schedules.id
      from carillon.schedules
      where schedules.state = 'deleted' and schedules.deleted_at < ${p.deletedBefore}
      order by schedules.deleted_at
      limit ${p.limit}
      for update skip locked
    ), revisions as (
      delete from carillon.schedule_revisions
      using doomed
      where schedule_revisions.schedule_id = doomed.id
    ), backlogs as (
      delete from carillon.slot_backlogs
      using doomed
      where slot_backlogs.schedule_id = doomed.id
    ), changes as (
      delete from carillon.schedule_changes
      using doomed
      where schedule_changes.schedule_id = doomed.id
    ), grants as (
      delete from carillon.execution_grants
      using doomed
      where execution_grants.schedule_id = doomed.id
    )
    delete from carillon.schedules
    using doomed
    where schedules.id = doomed.id
    returning schedules.id`.execute(db)
  return rows.length
}
