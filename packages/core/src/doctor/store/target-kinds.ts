import { sql } from 'kysely'

import type { Db } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'

/** How many active schedules have targets of one kind. */
export interface ActiveKind {
  readonly targetKind: string
  readonly schedules: number
}

/** Scans all active schedules: for the doctor, not for the pipeline. */
export async function countActiveKinds(db: Db): Promise<ActiveKind[]> {
  const { rows } = await sql<{ target_kind: string; schedules: number }>`
    select schedules.target_kind, count(*)::int as schedules
    from carillon.schedules
    where schedules.state = 'active'
    group by schedules.target_kind
    order by schedules.target_kind`.execute(db)
  return rows.map((row) => ({ targetKind: row.target_kind, schedules: row.schedules }))
}

/** The waiting runs with targets of one kind. */
export interface WaitingKind {
  readonly targetKind: string
  readonly waiting: number
  /** For how long the oldest of them has been due; 0 if none is. */
  readonly overdueMs: number
}

/**
 * Scans all waiting runs: for the doctor, not for the pipeline. A lane begins with its target kind.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function listWaitingKinds(db: Db, p: { now: Date | null }): Promise<WaitingKind[]> {
  const { rows } = await sql<{ target_kind: string; waiting: number; overdue_ms: number | null }>`
    select split_part(runs.lane, '.', 1) as target_kind, count(*)::integer as waiting,
      (extract(epoch from ${nowOf(p.now)} - min(runs.due_at) filter (where runs.due_at <= ${nowOf(p.now)})) * 1000)::float8
        as overdue_ms
    from carillon.runs
    where runs.due_at is not null
    group by split_part(runs.lane, '.', 1)
    order by split_part(runs.lane, '.', 1)`.execute(db)
  return rows.map(({ target_kind, waiting, overdue_ms }) => ({
    targetKind: target_kind,
    waiting,
    overdueMs: overdue_ms ?? 0,
  }))
}
