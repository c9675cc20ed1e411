import { sql } from 'kysely'

import type { Tx } from './database.ts'
import { nowOf } from './now.ts'

export type ScheduleChangeKind =
  | 'created'
  | 'edited'
  | 'paused'
  | 'resumed'
  | 'completed'
  | 'deleted'
  | 'slot_skipped'
  | 'slot_restored'
  | 'grant_expiring'
  | 'grant_revoked'
  | 'grant_renewed'

/** Records who changed what: reads state, revision and next slot from the rows as they are now, after the change. */
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
