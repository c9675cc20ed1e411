import type { RunChangeKind, ScheduleChangeKind } from '@carillon/api'

import type { Tx } from './database.ts'
import { nowOf } from './now.ts'
import { instantText } from './parameters.ts'
import { sql } from './sql.ts'

/** A change of the schedule itself, not of one of its runs. */
export type OwnChangeKind = Exclude<ScheduleChangeKind, RunChangeKind>

/** A change of one run has the slot of the run, and no other change has one: by that the audit knows that no slot of the cadence changed. */
type Change =
  | { readonly change: RunChangeKind; readonly scheduledFor: number }
  | { readonly change: OwnChangeKind; readonly scheduledFor?: never }

/**
 * Records a change of schedules and its actor. Call it after the change: it copies revision and next slot from the rows. `now` is null in
 * production: Postgres' clock decides.
 */
export async function insertChanges(
  tx: Tx,
  p: Change & {
    scheduleIds: readonly string[]
    actor: string
    reason: string | null
    now: Date | null
  },
): Promise<void> {
  await sql`
    insert into schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, next_slot_at, scheduled_for, actor_subject, reason, changed_at
    )
    select schedules.id, schedules.tenant_id, schedules.project_id, ${p.change}::schedule_change,
      schedules.revision, schedules.next_slot_at, ${instantText(p.scheduledFor ?? null)}::timestamptz, ${p.actor},
      ${p.reason}, ${nowOf(p.now)}
    from schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])`.execute(tx)
}
