import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import type pg from 'pg'

import type { Clock } from '../clock.ts'
import type { DB } from './schema.generated.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

/** Where a statement runs: on any connection, or inside a transaction. */
export type Db = Kysely<DB>
export type Tx = Transaction<DB>

const TRIES_MAX = 10
const BACKOFF_BASE_MS = 2
const BACKOFF_CAP_MS = 250

export function createDb(pool: pg.Pool): Db {
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) })
}

/**
 * Runs everything in one transaction, and again from its start should Postgres have cut it short in favour of another
 * one. What `work` does outside of the database must bear repeating.
 */
export function transact<Result>(db: Db, clock: Clock, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  return whileCutShort(clock, () => db.transaction().execute(work))
}

/**
 * Tries again what Postgres cut short in favour of another transaction, and nothing else: where the connection was lost, what was
 * tried may have been committed.
 */
export async function whileCutShort<Result>(clock: Clock, attempt: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!isCutShort(error) || tries >= TRIES_MAX) throw error
      await clock.sleep(Math.random() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** tries))
    }
  }
}

function isCutShort(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code === SQLSTATE.serializationFailure || code === SQLSTATE.deadlockDetected
}
