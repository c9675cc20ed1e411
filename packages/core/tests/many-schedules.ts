import { sql } from 'kysely'

import { Grants } from '../src/access/grants.ts'
import type { Schedule } from '../src/ledger/records.ts'
import { CALLER, type Pipeline } from './pipeline.ts'

/**
 * A schedule and so many copies of it, by one grant. Creating them one by one would take minutes.
 * @param input of the first
 */
export async function createCopies(pipeline: Pipeline, copies: number, input: object): Promise<Schedule> {
  const { db, clock } = pipeline
  // Nobody's own, so that it carries all of them.
  const { id: grantId } = await new Grants({ db, clock }).create(CALLER, { scopes: ['test:dispatch:*'] })
  const schedule = await pipeline.create({ ...input, grantId })
  await sql`
    with copies as (select gen_random_uuid() as id from generate_series(1, ${copies}::integer)), schedules as (
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      select copies.id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      from copies, carillon.schedules as original
      where original.id = ${schedule.id}
    ), revisions as (
      insert into carillon.schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
        grant_id, required_scope, changed_by_subject, changed_at
      )
      select copies.id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
        grant_id, required_scope, changed_by_subject, changed_at
      from copies, carillon.schedule_revisions as original
      where original.schedule_id = ${schedule.id}
    )
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, changed_at
    )
    select copies.id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, changed_at
    from copies, carillon.schedule_changes as original
    where original.schedule_id = ${schedule.id}`.execute(db)
  return schedule
}
