import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { JOB_KEY_OF_RUN } from './job-keys.ts'
import { isOpen } from './open-runs.ts'

/** A job that no run waits for. */
export interface SurplusJob {
  /** Null if it was added by somebody else: ours all have one. */
  readonly key: string | null
  readonly task: string
}

/**
 * Jobs for attempts that nobody has begun to handle and whose run does not wait for one. Both sides are as small as what
 * waits. Given keys, only those: to look again under the locks of their schedules.
 */
export async function findSurplusJobs(
  db: Db | Tx,
  p: { keys: readonly string[] | null; limit: number },
): Promise<SurplusJob[]> {
  const { rows } = await sql<{ key: string | null; task: string }>`
    select jobs.key, jobs.task_identifier as task
    from carillon_jobs.jobs
    where jobs.task_identifier like 'attempt.%'
      and jobs.locked_at is null
      and (${p.keys}::text[] is null or jobs.key = any(${p.keys}::text[]))
      and not exists (
        select from carillon.runs
        where ${isOpen()}
          and runs.state in ('pending', 'retrying')
          and ${JOB_KEY_OF_RUN} = jobs.key
      )
    order by jobs.id
    limit ${p.limit}`.execute(db)
  return rows
}
