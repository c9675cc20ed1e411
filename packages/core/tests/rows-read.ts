import type { Db } from '../src/db/database.ts'
import { sql } from './sql.ts'

/**
 * Counts the rows that some work reads, those that a filter removes included.
 * @param p.db has a single connection, so that its statistics can be flushed
 * @param p.admin may read the statistics
 * @param p.tables a pattern of the names of tables. @default those of runs
 */
export async function countRowsRead(
  p: { db: Db; admin: Db; tables?: string },
  work: () => Promise<unknown>,
): Promise<number> {
  const { tables = 'runs%' } = p
  const flush = sql`select pg_stat_force_next_flush()`
  await flush.execute(p.db)
  const before = await rowsRead(p.admin, tables)
  await work()
  await flush.execute(p.db)
  return (await rowsRead(p.admin, tables)) - before
}

async function rowsRead(db: Db, tables: string): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
    from pg_stat_user_tables where relname like ${tables}`.execute(db)
  return rows[0]?.read ?? Number.NaN
}
