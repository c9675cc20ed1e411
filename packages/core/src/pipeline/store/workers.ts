import { boolean, columns, instant, json, text, uuid } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { literal, sql } from '../../db/sql.ts'
import type { FailingServices } from '../../kernel/failure-record.ts'
import { NIL_UUID } from '../../kernel/ids.ts'
import { TZDATA_VERSION, VERSION } from '../../kernel/version.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import { FENCE_COLUMNS, RUNS_WITH_REVISION } from './fences.ts'

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
    insert into workers (
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
  const rows = await sql`
    update workers
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
    update workers
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

const WORKER_COLUMNS = columns('workers', {
  id: uuid,
  name: text,
  targetKinds: text.list,
  version: text.orNull,
  tzdataVersion: text.orNull,
  startedAt: instant,
  heartbeatAt: instant,
  failing: json<FailingServices>().orNull,
})

/** All workers, the longest running first. */
export async function listWorkers(db: Db, p: { now: Date | null }): Promise<WorkerRecord[]> {
  const isAlive = boolean.as(sql`workers.lease_expires_at > ${nowOf(p.now)}`)
  return sql`
    select ${WORKER_COLUMNS.with('workers', { isAlive })}
    from workers
    order by workers.started_at, workers.id`.execute(db)
}

const WORKER_ID = columns('workers', { id: uuid })

/** Workers whose lease has run out. */
export async function findDeadWorkers(db: Db, p: { now: Date | null }): Promise<string[]> {
  const rows = await sql`
    select ${WORKER_ID}
    from workers
    where workers.lease_expires_at <= ${nowOf(p.now)}`.execute(db)
  return rows.map(({ id }) => id)
}

/**
 * Deletes workers whose lease has run out and whose runs are all rescued. While a run is left, the worker's row stays, so that a rescuer
 * finds the run. Returns how many rows it deleted.
 */
export async function removeDeadWorkers(db: Db, p: { ids: readonly string[]; now: Date | null }): Promise<number> {
  const rows = await sql`
    delete from workers
    where workers.id = any(${p.ids}::uuid[])
      and workers.lease_expires_at <= ${nowOf(p.now)}
      and workers.id <> all(array(
        select runs.worker_id
        from runs
        where runs.worker_id = any(${p.ids}::uuid[]) and ${isOpen()} and runs.state = 'running'
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

const ORPHAN_COLUMNS = FENCE_COLUMNS.with('runs', {
  isCancelRequested: boolean.as(sql`runs.cancel_requested_at is not null`),
  policy: text.orNull.as(sql`revisions.policy::text`),
})

/**
 * Runs of some kinds that are held by workers whose lease has run out. With `workerIds` null, runs held by any worker that is not alive:
 * that reads all held runs. Waiting runs are never read.
 */
export async function findOrphanedRuns(
  db: Db,
  p: { workerIds: readonly string[] | null; targetKinds: readonly string[]; limit: number; now: Date | null },
): Promise<OrphanedRun[]> {
  const isOfWorker =
    p.workerIds === null
      ? // With `is not null`, Postgres would scan a month that its statistics show as empty, instead of the index of open runs.
        sql`runs.worker_id >= ${literal(NIL_UUID)}`
      : sql`runs.worker_id = any(${p.workerIds}::uuid[])`
  const rows = await sql`
    select ${ORPHAN_COLUMNS}
    from ${RUNS_WITH_REVISION}
    where ${isOpen()}
      and ${isOfWorker}
      and runs.state = 'running'
      and coalesce(revisions.target_kind, schedules.target_kind) = any(${p.targetKinds}::text[])
      and not exists (
        select from workers
        where workers.id = runs.worker_id and workers.lease_expires_at > ${nowOf(p.now)}
      )
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ ...row, policy: row.policy ?? '' }))
}
