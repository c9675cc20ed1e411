import { sql } from 'kysely'

import { TZDATA_VERSION, VERSION } from '../version.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'
import { isOpen } from './open-runs.ts'

/** Makes a worker known, with what this process runs on, and gives it its first lease. */
export async function registerWorker(
  db: Db,
  p: {
    id: string
    name: string
    targetKinds: readonly string[]
    engineWorkerIds: readonly string[]
    leaseMs: number
    now: Date | null
  },
): Promise<void> {
  await sql`
    insert into carillon.workers (
      id, name, target_kinds, engine_worker_ids, started_at, heartbeat_at, lease_expires_at, version, tzdata_version
    )
    values (
      ${p.id}, ${p.name}, ${p.targetKinds}::text[], ${p.engineWorkerIds}::text[], ${nowOf(p.now)}, ${nowOf(p.now)},
      ${nowOf(p.now)} + ${p.leaseMs} * interval '1 millisecond', ${VERSION}, ${TZDATA_VERSION}
    )`.execute(db)
}

/** Extends a lease that still holds. False if it has run out: what the worker held may be somebody else's by now. */
export async function extendLease(
  db: Db,
  p: { id: string; engineWorkerIds: readonly string[]; leaseMs: number; now: Date | null },
): Promise<boolean> {
  const { rows } = await sql`
    update carillon.workers
    set heartbeat_at = ${nowOf(p.now)},
      lease_expires_at = ${nowOf(p.now)} + ${p.leaseMs} * interval '1 millisecond',
      engine_worker_ids = ${p.engineWorkerIds}::text[]
    where workers.id = ${p.id} and workers.lease_expires_at > ${nowOf(p.now)}
    returning workers.id`.execute(db)
  return rows.length === 1
}

/** Takes a worker off the list: one that stopped, or one that died and holds nothing any more. */
export async function removeWorkers(db: Db | Tx, p: { ids: readonly string[] }): Promise<void> {
  await sql`delete from carillon.workers where workers.id = any(${p.ids}::uuid[])`.execute(db)
}

/** A process that keeps the agenda, as it made itself known. */
export interface WorkerRecord {
  readonly id: string
  readonly name: string
  readonly targetKinds: readonly string[]
  /** Null if it is from before workers said so. */
  readonly version: string | null
  readonly tzdataVersion: string | null
  readonly startedAt: number
  readonly heartbeatAt: number
  /** Whether its lease holds. One whose lease has run out is removed by the next rescuer. */
  readonly isAlive: boolean
}

/** All workers that are on the list, the longest serving first. */
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
  }>`
    select workers.id, workers.name, workers.target_kinds, workers.version, workers.tzdata_version, workers.started_at,
      workers.heartbeat_at, workers.lease_expires_at > ${nowOf(p.now)} as is_alive
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
  }))
}

export interface DeadWorker {
  readonly id: string
  readonly engineWorkerIds: readonly string[]
}

/** Workers whose lease has run out. */
export async function findDeadWorkers(db: Db, p: { now: Date | null }): Promise<DeadWorker[]> {
  const { rows } = await sql<{ id: string; engine_worker_ids: string[] }>`
    select workers.id, workers.engine_worker_ids
    from carillon.workers
    where workers.lease_expires_at <= ${nowOf(p.now)}`.execute(db)
  return rows.map((row) => ({ id: row.id, engineWorkerIds: row.engine_worker_ids }))
}

export interface OrphanedRun {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly runId: string
  readonly workerId: string
  readonly token: number
  readonly attempt: number
  readonly isCancelRequested: boolean
  /** JSON text. */
  readonly policy: string
}

/** Running runs that no living worker holds. Walks the index of open runs, which is as small as what is under way. */
export async function findOrphanedRuns(db: Db, p: { limit: number; now: Date | null }): Promise<OrphanedRun[]> {
  const { rows } = await sql<{
    schedule_id: string
    scheduled_for: Date
    id: string
    worker_id: string
    token: number
    attempt_count: number
    is_cancel_requested: boolean
    policy: string
  }>`
    select runs.schedule_id, runs.scheduled_for, runs.id, runs.worker_id, runs.token, runs.attempt_count,
      runs.cancel_requested_at is not null as is_cancel_requested, revisions.policy::text as policy
    from carillon.runs
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where ${isOpen()}
      and runs.state = 'running'
      and not exists (
        select from carillon.workers
        where workers.id = runs.worker_id and workers.lease_expires_at > ${nowOf(p.now)}
      )
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    runId: row.id,
    workerId: row.worker_id,
    token: row.token,
    attempt: row.attempt_count,
    isCancelRequested: row.is_cancel_requested,
    policy: row.policy,
  }))
}
