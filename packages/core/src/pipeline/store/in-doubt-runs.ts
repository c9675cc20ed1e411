import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import type { RunFence } from '../../ledger/held-run.ts'

/** Gives the current transaction an id and returns it. Every transaction that wrote or locked something before has a lower id. */
export async function newTransactionId(db: Db | Tx): Promise<string> {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('expected a transaction id from Postgres, got none')
  return row.id
}

/** True if every transaction with a lower id is over: the next statement sees everything that they committed. */
export async function areEarlierOver(db: Db, p: { transactionId: string }): Promise<boolean> {
  const { rows } = await sql<{ are_over: boolean }>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= ${p.transactionId}::xid8 as are_over`.execute(db)
  return rows[0]?.are_over === true
}

/** The runs that the ledger says a worker holds. Reads the index of open runs only. */
export async function findRunningRuns(db: Db, p: { workerId: string; limit: number }): Promise<RunFence[]> {
  const { rows } = await sql<{
    id: string
    schedule_id: string
    scheduled_for: Date
    worker_id: string
    token: number
    attempt_count: number
    target_kind: string
  }>`
    select runs.id, runs.schedule_id, runs.scheduled_for, runs.worker_id, runs.token, runs.attempt_count,
      coalesce(revisions.target_kind, schedules.target_kind) as target_kind
    from carillon.runs
    join carillon.schedules on schedules.id = runs.schedule_id
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where ${isOpen()}
      and runs.state = 'running'
      and runs.worker_id = ${p.workerId}
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    runId: row.id,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    workerId: row.worker_id,
    token: row.token,
    attempt: row.attempt_count,
    targetKind: row.target_kind,
  }))
}
