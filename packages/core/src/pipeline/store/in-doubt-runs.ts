import { boolean, columns, text } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { sql } from '../../db/sql.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import { FENCE_COLUMNS, RUNS_WITH_REVISION } from './fences.ts'

const TRANSACTION_ID = columns('transaction', { id: text.as(sql`pg_current_xact_id()::text`) })

/** Gives the current transaction an id and returns it. Every transaction that wrote or locked something before has a lower id. */
export async function newTransactionId(db: Db | Tx): Promise<string> {
  const [row] = await sql`select ${TRANSACTION_ID}`.execute(db)
  if (row === undefined) throw new Error('expected a transaction id from Postgres, got none')
  return row.id
}

/** True if every transaction with a lower id is over: the next statement sees everything that they committed. */
export async function areEarlierOver(db: Db, p: { transactionId: string }): Promise<boolean> {
  const areOver = boolean.as(sql`pg_snapshot_xmin(pg_current_snapshot()) >= ${p.transactionId}::xid8`)
  const [row] = await sql`select ${columns('snapshot', { areOver })}`.execute(db)
  return row?.areOver === true
}

/** The runs that the ledger says a worker holds. Reads the index of open runs only. */
export async function findRunningRuns(db: Db, p: { workerId: string; limit: number }): Promise<RunFence[]> {
  return sql`
    select ${FENCE_COLUMNS}
    from ${RUNS_WITH_REVISION}
    where ${isOpen()}
      and runs.state = 'running'
      and runs.worker_id = ${p.workerId}
    limit ${p.limit}`.execute(db)
}
