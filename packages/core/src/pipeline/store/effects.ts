import { SYSTEM_SUBJECT } from '@carillon/api'

import { columns, instant, integer, text, uuid } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { literal, sql } from '../../db/sql.ts'

/** An active schedule that a hook completes or pauses. */
export interface ActiveSchedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
  readonly nextSlotAt: number
  readonly dueAt: number
  readonly excludedSlots: readonly number[]
}

const ACTIVE_COLUMNS = columns('schedules', {
  id: uuid,
  tenantId: text,
  projectId: text,
  revision: integer,
  nextSlotAt: instant.present,
  dueAt: instant.present,
  excludedSlots: instant.list.orNull,
})

/** Those of some schedules that are active. Call with their rows locked. */
export async function findActive(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<ActiveSchedule[]> {
  const rows = await sql`
    select ${ACTIVE_COLUMNS}
    from schedules
    where schedules.id = any(${p.scheduleIds}::uuid[]) and schedules.state = 'active'`.execute(tx)
  return rows.map((row) => ({ ...row, excludedSlots: row.excludedSlots ?? [] }))
}

/** Completes active schedules: they have no further slot. Call with their rows locked. */
export async function completeSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<void> {
  await sql`
    update schedules
    set state = 'completed', next_slot_at = null, due_at = null
    where schedules.id = any(${p.scheduleIds}::uuid[]) and schedules.state = 'active'`.execute(tx)
}

/** Pauses active schedules. Call with their rows locked. `now` is null in production: Postgres' clock decides. */
export async function pauseSchedules(
  tx: Tx,
  p: { scheduleIds: readonly string[]; reason: string; now: Date | null },
): Promise<void> {
  await sql`
    update schedules
    set state = 'paused', next_slot_at = null, due_at = null, paused_at = ${nowOf(p.now)}, paused_reason = ${p.reason},
      paused_by_subject = ${literal(SYSTEM_SUBJECT)}
    where schedules.id = any(${p.scheduleIds}::uuid[]) and schedules.state = 'active'`.execute(tx)
}
