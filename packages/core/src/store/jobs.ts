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

/** A slot that is to have a job, or no longer. */
interface JobOfSlot {
  readonly scheduleId: string
  /** As in the job's key. */
  readonly scheduledFor: string
  readonly targetKind: string
}

/** `addJobs` for the API, which may not touch the engine: only of schedules of its own project. */
export async function requestJobs(
  tx: Tx,
  p: { slots: readonly (JobOfSlot & { readonly runAt: string | null })[] },
): Promise<void> {
  const slots = p.slots.map((slot) => ({ ...slot, maxAttempts: ENGINE_ATTEMPTS }))
  await sql`select carillon.request_jobs(${JSON.stringify(slots)}::json)`.execute(tx)
}

/** `removeJobs` for the API. */
export async function withdrawJobs(tx: Tx, p: { slots: readonly JobOfSlot[] }): Promise<void> {
  await sql`select carillon.withdraw_jobs(${JSON.stringify(p.slots)}::json)`.execute(tx)
}

/** Has a worker audit soon. Of requests that wait, one is kept. */
export async function requestAuditJob(tx: Tx): Promise<void> {
  await sql`select carillon.request_audit(${ENGINE_ATTEMPTS}::integer)`.execute(tx)
}

/** Frees the jobs that dead workers hold; the engine itself would wait for four hours. */
export async function unlockJobs(db: Db | Tx, p: { engineWorkerIds: readonly string[] }): Promise<void> {
  await sql`select carillon_jobs.force_unlock_workers(${p.engineWorkerIds}::text[])`.execute(db)
}
