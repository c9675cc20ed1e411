import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import { FENCE_COLUMNS, RUNS_WITH_REVISION, toFence, type FenceRow } from './fences.ts'

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
  const { rows } = await sql<FenceRow>`
    select ${FENCE_COLUMNS}
    from ${RUNS_WITH_REVISION}
    where ${isOpen()}
      and runs.state = 'running'
      and runs.worker_id = ${p.workerId}
    limit ${p.limit}`.execute(db)
  return rows.map(toFence)
}
