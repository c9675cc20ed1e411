import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/** A job as the engine takes it. */
export interface JobSpec {
  readonly task: string
  readonly key: string
  readonly payload: Readonly<Record<string, string>>
  /** Null: at once. */
  readonly runAt: number | null
}

// The engine's attempts are no business of ours: a crash costs one, and a job out of attempts is never run again (measured).
const ENGINE_ATTEMPTS = 1000

/** Adds jobs in the caller's transaction, whole arrays at once: one by one is quadratic. */
export async function addJobs(tx: Tx, p: { jobs: readonly JobSpec[] }): Promise<void> {
  const specs = p.jobs.map((job) => ({
    identifier: job.task,
    payload: job.payload,
    run_at: job.runAt === null ? null : new Date(job.runAt).toISOString(),
    max_attempts: ENGINE_ATTEMPTS,
    job_key: job.key,
  }))
  await sql`
    select from carillon_jobs.add_jobs(
      array(select json_populate_recordset(null::carillon_jobs.job_spec, ${JSON.stringify(specs)}::json))
    )`.execute(tx)
}

/** Takes back jobs that nobody waits for any longer. One that has just been started finds its run gone and does nothing. */
export async function removeJobs(tx: Tx, p: { keys: readonly string[] }): Promise<void> {
  await sql`select carillon_jobs.remove_job(key) from unnest(${p.keys}::text[]) as removed(key)`.execute(tx)
}

/** Frees the jobs that dead workers hold; the engine itself would wait for four hours. */
export async function unlockJobs(db: Db | Tx, p: { engineWorkerIds: readonly string[] }): Promise<void> {
  await sql`select carillon_jobs.force_unlock_workers(${p.engineWorkerIds}::text[])`.execute(db)
}
