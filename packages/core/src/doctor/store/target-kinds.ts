import { columns, double, integer, text } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'

/** How many active schedules have targets of one kind. */
export interface ActiveKind {
  readonly targetKind: string
  readonly schedules: number
}

const ACTIVE_COLUMNS = columns('schedules', { targetKind: text, schedules: integer.as(sql`count(*)::int`) })

/** Scans all active schedules: for the doctor, not for the pipeline. */
export async function countActiveKinds(db: Db): Promise<ActiveKind[]> {
  return sql`
    select ${ACTIVE_COLUMNS}
    from schedules
    where schedules.state = 'active'
    group by schedules.target_kind
    order by schedules.target_kind`.execute(db)
}

/** The waiting runs with targets of one kind. */
export interface WaitingKind {
  readonly targetKind: string
  readonly waiting: number
  /** For how long the oldest of them has been due; 0 if none is. */
  readonly overdueMs: number
}

const WAITING_COLUMNS = columns('runs', {
  targetKind: text.as(sql`split_part(runs.lane, '.', 1)`),
  waiting: integer.as(sql`count(*)::integer`),
})

/**
 * Scans all waiting runs: for the doctor, not for the pipeline. A lane begins with its target kind.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function listWaitingKinds(db: Db, p: { now: Date | null }): Promise<WaitingKind[]> {
  const overdueMs = sql`
    (extract(epoch from ${nowOf(p.now)} - min(runs.due_at) filter (where runs.due_at <= ${nowOf(p.now)})) * 1000)::float8`
  const rows = await sql`
    select ${WAITING_COLUMNS.with('runs', { overdueMs: double.orNull.as(overdueMs) })}
    from runs
    where runs.due_at is not null
    group by split_part(runs.lane, '.', 1)
    order by split_part(runs.lane, '.', 1)`.execute(db)
  return rows.map((row) => ({ ...row, overdueMs: row.overdueMs ?? 0 }))
}
