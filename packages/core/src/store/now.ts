import { sql, type RawBuilder } from 'kysely'

import type { Db, Tx } from './database.ts'

/**
 * Now, as statements mean it: the start of the transaction by Postgres' clock (I10), or the instant a test names.
 * now() and not clock_timestamp(): a volatile function is no index condition, and a look would read every schedule.
 */
export function nowOf(now: Date | null): RawBuilder<Date> {
  return sql<Date>`coalesce(${now}::timestamptz, now())`
}

/** Now, for decisions that are made outside of a statement: to the millisecond, as slots are. */
export async function readNow(db: Db | Tx, now: Date | null): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select ${nowOf(now)} as now`.execute(db)
  return told(rows)
}

/**
 * The instant at which Postgres answers, not that at which the transaction began: for a change that waited for a lock. By
 * the start of its transaction it would take for ahead what another one began while it waited.
 */
export async function readClock(tx: Tx, now: Date | null): Promise<number> {
  const { rows } = await sql<{ now: Date }>`
    select coalesce(${now}::timestamptz, clock_timestamp()) as now`.execute(tx)
  return told(rows)
}

function told([row]: readonly { now: Date }[]): number {
  if (row === undefined) throw new Error('Postgres told no time')
  return row.now.getTime()
}
