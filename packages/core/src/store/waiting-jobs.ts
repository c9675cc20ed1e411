import { sql } from 'kysely'

import type { Db } from './database.ts'
import { nowOf } from './now.ts'

/** The jobs of one task that nobody handles at this moment. */
export interface WaitingJobs {
  readonly task: string
  readonly waiting: number
  /** By how much the one that should have been handled first is late; 0 if none is due. */
  readonly overdueMs: number
  /** Jobs that the engine has given up. */
  readonly exhausted: number
}

/** Reads every job: for a diagnosis, not for a pipeline. */
export async function countWaitingJobs(db: Db, p: { now: Date | null }): Promise<WaitingJobs[]> {
  const { rows } = await sql<{ task: string; waiting: number; overdue_ms: number; exhausted: number }>`
    select jobs.task_identifier as task,
      count(*) filter (where jobs.attempts < jobs.max_attempts)::int as waiting,
      greatest(
        0,
        extract(epoch from ${nowOf(p.now)} - min(jobs.run_at) filter (where jobs.attempts < jobs.max_attempts)) * 1000
      )::double precision as overdue_ms,
      count(*) filter (where jobs.attempts >= jobs.max_attempts)::int as exhausted
    from carillon_jobs.jobs
    where jobs.locked_at is null
    group by jobs.task_identifier
    order by jobs.task_identifier`.execute(db)
  return rows.map((row) => ({
    task: row.task,
    waiting: row.waiting,
    overdueMs: Math.round(row.overdue_ms),
    exhausted: row.exhausted,
  }))
}
