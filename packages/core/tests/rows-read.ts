import type { Db, Tx } from '../src/db/database.ts'
import { sql } from './sql.ts'

/**
 * Counts the rows of the ledger that some work reads.
 * @param p.db has a single connection, so that its statistics can be flushed
 * @param p.admin may read the statistics
 */
export async function countRowsRead(p: { db: Db; admin: Db }, work: () => Promise<unknown>): Promise<number> {
  const flush = sql`select pg_stat_force_next_flush()`
  await flush.execute(p.db)
  const before = await rowsRead(p.admin)
  await work()
  await flush.execute(p.db)
  return (await rowsRead(p.admin)) - before
}

/** Counts the rows of a table that statements of a transaction read, those that a filter removes included. Other connections do not count. */
export async function countRowsReadIn(tx: Tx, table: string, work: () => Promise<unknown>): Promise<number> {
  const read = async (): Promise<number> => {
    const { rows } = await sql<{ read: number }>`
      select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_xact_user_tables where relname = ${table}`.execute(tx)
    return rows[0]?.read ?? Number.NaN
  }
  const before = await read()
  await work()
  return (await read()) - before
}

async function rowsRead(db: Db): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
    from pg_stat_user_tables where relname like 'runs%'`.execute(db)
  return rows[0]?.read ?? Number.NaN
}
