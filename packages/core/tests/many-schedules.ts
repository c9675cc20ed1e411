import { Grants } from '../src/access/grants.ts'
import type { Queryable } from '../src/db/database.ts'
import type { Schedule } from '../src/ledger/records.ts'
import { CALLER, type Pipeline } from './pipeline.ts'
import { sql } from './sql.ts'

/** Small enough for a statement to end within the pool's time limit, even on a busy machine. */
const BATCH = 2000

/**
 * Creates a schedule and this many copies of it, all with one grant. Creating them one by one would take minutes.
 * @param input of the schedule that is copied
 */
export async function createCopies(pipeline: Pipeline, copies: number, input: object): Promise<Schedule> {
  const { db, clock } = pipeline
  // A grant that is no schedule's own permits all of them.
  const { id: grantId } = await new Grants({ db, clock }).create(CALLER, { scopes: ['test:dispatch:*'] })
  const schedule = await pipeline.create({ ...input, grantId })
  for (let done = 0; done < copies; done += BATCH) await copy(db, schedule.id, Math.min(BATCH, copies - done))
  return schedule
}

async function copy(db: Queryable, id: string, copies: number): Promise<void> {
  await sql`
    with copies as (select gen_random_uuid() as id from generate_series(1, ${copies}::integer)), schedules as (
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      select copies.id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      from copies, carillon.schedules as original
      where original.id = ${id}
    ), revisions as (
      insert into carillon.schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
        grant_id, required_scope, changed_by_subject, changed_at
      )
      select copies.id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
        grant_id, required_scope, changed_by_subject, changed_at
      from copies, carillon.schedule_revisions as original
      where original.schedule_id = ${id}
    )
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, changed_at
    )
    select copies.id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, changed_at
    from copies, carillon.schedule_changes as original
    where original.schedule_id = ${id}`.execute(db)
}
