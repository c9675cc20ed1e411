import { sql } from 'kysely'

import type { Db } from '../src/db/database.ts'

/**
 * How many rows of the ledger some work reads.
 * @param p.db of a single connection, so that it can be made to tell what it read
 * @param p.everybody may read what was told
 */
export async function countRowsRead(p: { db: Db; everybody: Db }, work: () => Promise<unknown>): Promise<number> {
  const tell = sql`select pg_stat_force_next_flush()`
  await tell.execute(p.db)
  const before = await rowsRead(p.everybody)
  await work()
  await tell.execute(p.db)
  return (await rowsRead(p.everybody)) - before
}

async function rowsRead(db: Db): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
    from pg_stat_user_tables where relname like 'runs%'`.execute(db)
  return rows[0]?.read ?? Number.NaN
}
