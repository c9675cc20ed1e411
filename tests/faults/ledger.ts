import type { createPool } from '@carillon/core'

type Pool = ReturnType<typeof createPool>

export interface RunRow {
  readonly id: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly trigger: 'schedule' | 'manual'
  readonly state: string
  readonly attemptCount: number
  readonly completedAt: number | null
}

/** A change of a schedule. Until the next change the schedule awaits its slots from `nextSlotAt` on. Null: it awaits none. */
export interface ChangeRow {
  readonly scheduleId: string
  readonly change: string
  readonly changedAt: number
  readonly nextSlotAt: number | null
}

export interface ScheduleRow {
  readonly id: string
  /** The name from the create. */
  readonly name: string
  /** Null if the schedule is not active. */
  readonly nextSlotAt: number | null
  /** The counts in the schedule's own row: how many of its runs have begun, and how many have failed. */
  readonly runCount: number
  readonly failureCount: number
}

/** The contents of the database at one instant. */
export interface Ledger {
  readonly readAt: number
  readonly schedules: readonly ScheduleRow[]
  /** In the order in which they were made. */
  readonly changes: readonly ChangeRow[]
  readonly runs: readonly RunRow[]
}

/** Reads as the superuser, once nothing changes any more. Instants are in epoch milliseconds. */
export async function readLedger(pool: Pool): Promise<Ledger> {
  const { rows: schedules } = await pool.query<ScheduleRow>(`
    select schedules.id, revisions.name, ${millisecondsOf('schedules.next_slot_at')} as "nextSlotAt",
      schedules.run_count::int as "runCount", schedules.failure_count::int as "failureCount"
    from carillon.schedules
    join carillon.schedule_revisions as revisions on revisions.schedule_id = schedules.id and revisions.revision = 1`)
  const { rows: changes } = await pool.query<ChangeRow>(`
    select schedule_id as "scheduleId", change::text as change, ${millisecondsOf('changed_at')} as "changedAt",
      ${millisecondsOf('next_slot_at')} as "nextSlotAt"
    from carillon.schedule_changes
    order by id`)
  const { rows: runs } = await pool.query<RunRow>(`
    select id, schedule_id as "scheduleId", ${millisecondsOf('scheduled_for')} as "scheduledFor", trigger::text as trigger,
      state::text as state, attempt_count as "attemptCount", ${millisecondsOf('completed_at')} as "completedAt"
    from carillon.runs`)
  return { readAt: Date.now(), schedules, changes, runs }
}

function millisecondsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`
}
