import { sql } from 'kysely'

import type { Db } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import type { FailingServices } from '../../kernel/failure-record.ts'
import { NIL_UUID } from '../../kernel/ids.ts'
import { TZDATA_VERSION, VERSION } from '../../kernel/version.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import { FENCE_COLUMNS, RUNS_WITH_REVISION, toFence, type FenceRow } from './fences.ts'

/* In every function, `now` is null in production: Postgres' own clock decides (I10). A test passes an instant. */

/** Inserts the row of a worker, with the versions it runs on and its first lease. */
export async function registerWorker(
  db: Db,
  p: {
    id: string
    name: string
    targetKinds: readonly string[]
    leaseMs: number
    now: Date | null
  },
): Promise<void> {
  await sql`
    insert into carillon.workers (
      id, name, target_kinds, started_at, heartbeat_at, lease_expires_at, version, tzdata_version
    )
    values (
      ${p.id}, ${p.name}, ${p.targetKinds}::text[], ${nowOf(p.now)}, ${nowOf(p.now)},
      ${nowOf(p.now)} + ${p.leaseMs} * interval '1 millisecond', ${VERSION}, ${TZDATA_VERSION}
    )`.execute(db)
}

/**
 * Extends a lease that has not run out, and stores which services fail (null: none) and when the worker last had no room for another
 * run (null: never).
 * @returns false if the lease has run out: another worker may hold its runs by now
 */
export async function extendLease(
  db: Db,
  p: { id: string; failing: FailingServices | null; fullMsAgo: number | null; leaseMs: number; now: Date | null },
): Promise<boolean> {
  const { rows } = await sql`
    update carillon.workers
    set heartbeat_at = ${nowOf(p.now)},
      lease_expires_at = ${nowOf(p.now)} + ${p.leaseMs} * interval '1 millisecond',
      failing = ${p.failing === null ? null : JSON.stringify(p.failing)}::json,
      full_at = ${nowOf(p.now)} - ${p.fullMsAgo}::double precision * interval '1 millisecond'
    where workers.id = ${p.id} and workers.lease_expires_at > ${nowOf(p.now)}
    returning workers.id`.execute(db)
  return rows.length === 1
}

/** Ends the lease of a worker that stops. */
export async function endLease(db: Db, p: { id: string; now: Date | null }): Promise<void> {
  await sql`
    update carillon.workers
    set lease_expires_at = least(workers.lease_expires_at, ${nowOf(p.now)})
    where workers.id = ${p.id}`.execute(db)
}

/** A worker process, as its row describes it. */
export interface WorkerRecord {
  readonly id: string
  readonly name: string
  readonly targetKinds: readonly string[]
  /** Null for a worker of a version that did not store it. */
  readonly version: string | null
  readonly tzdataVersion: string | null
  readonly startedAt: number
  readonly heartbeatAt: number
  /** True if its lease has not run out. The row of a dead worker is deleted once its runs are rescued. */
  readonly isAlive: boolean
  /** The services that are failing; null: none. */
  readonly failing: FailingServices | null
}

/** All workers, the longest running first. */
export async function listWorkers(db: Db, p: { now: Date | null }): Promise<WorkerRecord[]> {
  const { rows } = await sql<{
    id: string
    name: string
    target_kinds: string[]
    version: string | null
    tzdata_version: string | null
    started_at: Date
    heartbeat_at: Date
    is_alive: boolean
    failing: FailingServices | null
  }>`
    select workers.id, workers.name, workers.target_kinds, workers.version, workers.tzdata_version, workers.started_at,
      workers.heartbeat_at, workers.lease_expires_at > ${nowOf(p.now)} as is_alive, workers.failing
    from carillon.workers
    order by workers.started_at, workers.id`.execute(db)
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    targetKinds: row.target_kinds,
    version: row.version,
    tzdataVersion: row.tzdata_version,
    startedAt: row.started_at.getTime(),
    heartbeatAt: row.heartbeat_at.getTime(),
    isAlive: row.is_alive,
    failing: row.failing,
  }))
}

/** Workers whose lease has run out. */
export async function findDeadWorkers(db: Db, p: { now: Date | null }): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select workers.id
    from carillon.workers
    where workers.lease_expires_at <= ${nowOf(p.now)}`.execute(db)
  return rows.map(({ id }) => id)
}

/**
 * Deletes workers whose lease has run out and whose runs are all rescued. While a run is left, the worker's row stays, so that a rescuer
 * finds the run. Returns how many rows it deleted.
 */
export async function removeDeadWorkers(db: Db, p: { ids: readonly string[]; now: Date | null }): Promise<number> {
  const { rows } = await sql`
    delete from carillon.workers
    where workers.id = any(${p.ids}::uuid[])
      and workers.lease_expires_at <= ${nowOf(p.now)}
      and workers.id <> all(array(
        select runs.worker_id from carillon.runs where runs.worker_id = any(${p.ids}::uuid[]) and ${isOpen()}
      ))
    returning workers.id`.execute(db)
  return rows.length
}

/** A run that is held by no living worker. */
export interface OrphanedRun extends RunFence {
  readonly isCancelRequested: boolean
  /** JSON text; empty if the revision is missing. */
  readonly policy: string
}

/**
 * Runs held by workers whose lease has run out. With `workerIds` null, runs held by any worker that is not alive: that reads all
 * held runs. Waiting runs are never read.
 */
export async function findOrphanedRuns(
  db: Db,
  p: { workerIds: readonly string[] | null; limit: number; now: Date | null },
): Promise<OrphanedRun[]> {
  const isOfWorker =
    p.workerIds === null
      ? // With `is not null`, Postgres would scan a month that its statistics show as empty, instead of the index of open runs.
        sql`runs.worker_id >= ${sql.lit(NIL_UUID)}`
      : sql`runs.worker_id = any(${p.workerIds}::uuid[])`
  const { rows } = await sql<FenceRow & { is_cancel_requested: boolean; policy: string | null }>`
    select ${FENCE_COLUMNS}, runs.cancel_requested_at is not null as is_cancel_requested, revisions.policy::text as policy
    from ${RUNS_WITH_REVISION}
    where ${isOpen()}
      and ${isOfWorker}
      and not exists (
        select from carillon.workers
        where workers.id = runs.worker_id and workers.lease_expires_at > ${nowOf(p.now)}
      )
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    ...toFence(row),
    isCancelRequested: row.is_cancel_requested,
    policy: row.policy ?? '',
  }))
}
