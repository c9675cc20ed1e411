import { columns, instant } from './columns.ts'
import type { Queryable, Tx } from './database.ts'
import { sql, type Sql } from './sql.ts'

/**
 * The time that statements decide by: the start of the transaction by Postgres' clock (I10), or the instant that a test names.
 * Not clock_timestamp(): an index condition cannot use a volatile function, and a look would read every schedule.
 * @param now null in production; a test names an instant
 */
export function nowOf(now: Date | null): Sql<never> {
  return sql`coalesce(${now}::timestamptz, now())`
}

/**
 * The time that statements record: Postgres' clock at this moment, or the instant that a test names. With the start of the
 * transaction, a statement that waited for a lock would end a run before its attempt ended.
 * @param notBefore the instant of a slot that is claimed ahead: its run does not start before it. Null otherwise.
 */
export function stampOf(now: Date | null, notBefore: Date | null = null): Sql<never> {
  return sql`coalesce(${now}::timestamptz, greatest(${notBefore}::timestamptz, clock_timestamp()))`
}

/** `nowOf` for decisions outside of a statement, in epoch milliseconds. */
export async function readTransactionTime(db: Queryable, now: Date | null): Promise<number> {
  const [row] = await sql`select ${columns('time', { now: instant.as(nowOf(now)) })}`.execute(db)
  return timeOf(row)
}

/**
 * Postgres' clock at this moment, in epoch milliseconds; for a change that may have waited for a lock. Compared with the
 * start of its transaction, a slot that another transaction began while the change waited would still lie in the future.
 */
export async function readCurrentTime(tx: Tx, now: Date | null): Promise<number> {
  const current = sql`coalesce(${now}::timestamptz, clock_timestamp())`
  const [row] = await sql`select ${columns('time', { now: instant.as(current) })}`.execute(tx)
  return timeOf(row)
}

function timeOf(row: { readonly now: number } | undefined): number {
  if (row === undefined) throw new Error('expected one row with the time, got none')
  return row.now
}
