import { sql, type RawBuilder } from 'kysely'

import type { Db, Tx } from './database.ts'

/**
 * Now, as statements decide by it: the start of the transaction by Postgres' clock (I10), or the instant a test names.
 * now() and not clock_timestamp(): a volatile function is no index condition, and a look would read every schedule.
 */
export function nowOf(now: Date | null): RawBuilder<Date> {
  return sql<Date>`coalesce(${now}::timestamptz, now())`
}

/**
 * Now, as statements write it down: the clock at this moment, or the instant a test names. By the start of its transaction, a
 * statement that waited for a lock would end a run before its attempt ended.
 * @param notBefore for a slot that is claimed ahead: its run does not start before its slot
 */
export function stampOf(now: Date | null, notBefore: Date | null = null): RawBuilder<Date> {
  return sql<Date>`coalesce(${now}::timestamptz, greatest(${notBefore}::timestamptz, clock_timestamp()))`
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
