import { sql } from 'kysely'
import pg from 'pg'

import type { Clock } from '../clock.ts'
import { whileCutShort, type Db, type Tx } from './database.ts'
import { IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from './pool.ts'

/** Behind which wall a transaction is: it sees and writes rows of this tenant and project, and no others (I9). */
export interface Place {
  readonly tenantId: string
  readonly projectId: string
}

/** What a transaction is told besides its place, by the names of `current_setting`. */
export type TransactionSettings = Readonly<Record<`carillon.${string}`, string>>

/** Owns nothing, and is held by every policy. */
const API_ROLE = 'carillon_api'

/**
 * Runs everything in one transaction of the role of the API, behind the wall of a place; without one it sees no row of any
 * tenant. Again from its start should Postgres have cut it short.
 *
 * Everything is set for this transaction alone, so nothing of it is left on the connection, whether it commits, fails or
 * is cut; and a pooler may lend the connection to somebody else right after. In one message with `begin`: it costs no round
 * trip.
 */
export function transactWithin<Result>(
  db: Db,
  clock: Clock,
  place: Place | null,
  work: (tx: Tx) => Promise<Result>,
  settings: TransactionSettings = {},
): Promise<Result> {
  const begin = sql.raw(beginText(place, settings))
  return whileCutShort(clock, () =>
    db.connection().execute(async (connection) => {
      // From `begin` on it is one; Kysely's own could not be told to set anything while it begins.
      const tx = connection as unknown as Tx
      try {
        await begin.execute(tx)
        const result = await work(tx)
        await sql`commit`.execute(tx)
        return result
      } catch (error) {
        await rollBack(tx)
        throw error
      }
    }),
  )
}

/** What went wrong first is what is told. A connection that cannot even roll back is broken, and its pool destroys it. */
async function rollBack(tx: Tx): Promise<void> {
  try {
    await sql`rollback`.execute(tx)
  } catch {
    // The server rolls back what a lost connection left.
  }
}

function beginText(place: Place | null, settings: TransactionSettings): string {
  const values = {
    role: API_ROLE,
    'carillon.tenant_id': place?.tenantId ?? '',
    'carillon.project_id': place?.projectId ?? '',
    statement_timeout: String(STATEMENT_TIMEOUT_MS),
    lock_timeout: String(LOCK_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
    ...settings,
  }
  const calls = Object.entries(values).map(([name, value]) => `set_config('${name}', ${pg.escapeLiteral(value)}, true)`)
  // Whatever the database's default: what counts under a lock must see what was committed before the lock was had.
  return `begin isolation level read committed; select ${calls.join(', ')}`
}
