import type { ScheduleChangeKind } from '@carillon/api'
import { sql } from 'kysely'

import type { Tx } from './database.ts'
import { nowOf } from './now.ts'

/**
 * Records a change of schedules and its actor. Call it after the change: it copies revision and next slot from the rows. `now` is null in
 * production: Postgres' clock decides.
 */
export async function insertChanges(
  tx: Tx,
  p: {
    scheduleIds: readonly string[]
    change: ScheduleChangeKind
    actor: string
    reason: string | null
    now: Date | null
  },
): Promise<void> {
  await sql`
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
    )
    select schedules.id, schedules.tenant_id, schedules.project_id, ${p.change}::carillon.schedule_change,
      schedules.revision, schedules.next_slot_at, ${p.actor}, ${p.reason}, ${nowOf(p.now)}
    from carillon.schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])`.execute(tx)
}
