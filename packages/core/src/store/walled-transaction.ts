import { CompiledQuery } from 'kysely'
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
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

/**
 * Runs everything in one transaction of the role of the API, behind the wall of a place; without one it sees no row of any
 * tenant. Again from its start should Postgres have cut it short.
 *
 * Everything is set for this transaction alone, so nothing of it is left on the connection, whether it commits, fails or
 * is cut; and a pooler may lend the connection to somebody else right after. In one message with `begin`: it costs no round
 * trip. Nor does what is to be read first, if it is said here: a statement without parameters, whose rows `work` is given.
 */
export function transactWithin<Result>(
  db: Db,
  clock: Clock,
  place: Place | null,
  work: (tx: Tx, read: readonly unknown[]) => Promise<Result>,
  settings: TransactionSettings = {},
  first?: string,
): Promise<Result> {
  const begin = CompiledQuery.raw(`${beginText(place, settings)}${first === undefined ? '' : `; ${first}`}`)
  return whileCutShort(clock, () =>
    db.connection().execute(async (connection) => {
      // From `begin` on it is one; Kysely's own could not be told to set anything while it begins.
      const tx = connection as unknown as Tx
      try {
        const { rows } = await tx.executeQuery(begin)
        const result = await work(tx, rows)
        await tx.executeQuery(COMMIT)
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
    await tx.executeQuery(ROLLBACK)
  } catch {
    // The server rolls back what a lost connection left.
  }
}

/**
 * Whatever the database's default, read committed: what counts under a lock must see what was committed before the lock was
 * had. In words rather than by `set_config`: that takes two thirds of the time, and every transaction of the API pays it.
 */
const BEGIN = `begin isolation level read committed; ${setLocal({
  role: API_ROLE,
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  lock_timeout: String(LOCK_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
})}`

function beginText(place: Place | null, settings: TransactionSettings): string {
  const { tenantId = '', projectId = '' } = place ?? {}
  return `${BEGIN}; ${setLocal({ 'carillon.tenant_id': tenantId, 'carillon.project_id': projectId, ...settings })}`
}

function setLocal(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `set local ${name} = ${pg.escapeLiteral(value)}`)
    .join('; ')
}
