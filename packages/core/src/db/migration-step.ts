import { messageOf } from '@carillon/api'
import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'
import { lockMigrations } from './locks.ts'
import { searchPath } from './schema-name.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

/** The longest time limit that the driver knows. A migration may take long; the pool's own limit is for the pipeline's statements. */
const SCRIPT_TIMEOUT_MS = 2 ** 31 - 1
/** How long a migration waits for a lock on a table before it gives up this try. */
const LOCK_TIMEOUT_MS = 1000
/** The pause before the next try. */
const LOCK_PAUSE_SECONDS = 1
/** How often a migration tries to get its locks: for about ten minutes. Then it fails. */
const LOCK_TRIES_MAX = 300
/** How often a migration checks for older workers. All checks take longer than a lease, so a worker that still has its lease is alive. */
const LEASE_TRIES_MAX = 15

/** Sends all statements in one message. */
export async function runScript(client: pg.ClientBase, text: string): Promise<void> {
  await client.query({ text, query_timeout: SCRIPT_TIMEOUT_MS } as pg.QueryConfig)
}

/**
 * Runs one step and retries it. A step that waits for a lock on a table blocks every writer behind it, so it gives up after a second,
 * lets them pass, and tries again: a long report delays the migration, not the pipeline. A step that finds older workers alive
 * waits until the leases of dead ones expire.
 * @throws CarillonError `workers_alive` if a worker is alive that the step would break; `schema_changed` if it would remove what tables of
 * modules need
 */
export async function retryStep<Result>(
  pool: pg.Pool,
  schema: string,
  work: (client: pg.ClientBase) => Promise<Result>,
  leasePauseSeconds = LOCK_PAUSE_SECONDS,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await inLockedTransaction(pool, schema, work)
    } catch (error) {
      const state = sqlStateOf(error)
      if (state === SQLSTATE.workersAlive && tries >= LEASE_TRIES_MAX) {
        throw new CarillonError('workers_alive', messageOf(error), { cause: error })
      }
      if (state === SQLSTATE.modulesPresent) {
        throw new CarillonError('schema_changed', messageOf(error), { cause: error })
      }
      const isRetryable = state === SQLSTATE.workersAlive || state === SQLSTATE.lockNotAvailable
      if (!isRetryable || tries >= LOCK_TRIES_MAX) throw error
      const pauseSeconds = state === SQLSTATE.workersAlive ? leasePauseSeconds : LOCK_PAUSE_SECONDS
      await pool.query('select pg_sleep($1)', [pauseSeconds])
    }
  }
}

async function inLockedTransaction<Result>(
  pool: pg.Pool,
  schema: string,
  work: (client: pg.ClientBase) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // Another process may be running a long migration. This one waits for it, whatever time limits the pool sets.
    await client.query(
      `set local lock_timeout = 0; set local statement_timeout = 0; set local search_path = ${searchPath(schema)}`,
    )
    await lockMigrations(client, schema)
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    const result = await work(client)
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    // Discards the connection, which also rolls back: after an error its state is unknown.
    client.release(true)
    throw error
  }
}
