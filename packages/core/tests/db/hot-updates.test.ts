import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { claimTurn, storeTurn } from '../../src/jobs/store/turns.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { extendLease, registerWorker } from '../../src/pipeline/store/workers.ts'
import { createDatabase } from '../database.ts'
import { MINUTE } from '../pipeline.ts'

const LEASE_MS = 10 * MINUTE

/** A fleet whose rows fill several pages; each worker sends one heartbeat. */
async function sendHeartbeats(db: Db): Promise<void> {
  const ids = Array.from({ length: 100 }, () => randomUUID())
  for (const id of ids) {
    await registerWorker(db, { id, name: 'worker', targetKinds: ['http'], leaseMs: LEASE_MS, now: null })
  }
  for (const id of ids) {
    expect(await extendLease(db, { id, failing: null, fullMsAgo: null, leaseMs: LEASE_MS, now: null })).toBe(true)
  }
}

/** Two services that do two slices each, with cursors as long as those of the audit. */
async function storeSlices(db: Db): Promise<void> {
  const workerId = randomUUID()
  for (const name of ['audit', 'upkeep', 'audit', 'upkeep']) {
    const { turn } = await claimTurn(db, { name, workerId, forMs: LEASE_MS, now: null })
    if (turn === undefined) throw new Error(`expected the turn of ${name}, got none`)
    const { fence } = turn
    const cursor = { changeId: '1', full: 'x'.repeat(400) }
    const stored = { name, fence, cursor, reachedAt: turn.now, restMs: 0, holdMs: 0, isAnswered: false, now: null }
    expect(await transact(db, systemClock, (tx) => storeTurn(tx, stored))).toBe(true)
  }
}

/** How many updates of a table wrote to its indexes, and how many there were. HOT updates write to none. */
async function countUpdates(
  table: string,
  work: (db: Db) => Promise<void>,
  storage?: string,
): Promise<{ readonly indexed: number; readonly all: number }> {
  await using database = await createDatabase()
  if (storage !== undefined) await database.pool.query(`alter table carillon.${table} ${storage}`)
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', maxConnections: 1 })
  const db = createDb(pool)
  await work(db)
  // Postgres reports the counts of a connection with a delay.
  await pool.query('select pg_stat_force_next_flush()')
  const { rows } = await pool.query<{ indexed: number; all: number }>(
    `select (n_tup_upd - n_tup_hot_upd)::integer as indexed, n_tup_upd::integer as all
     from pg_stat_user_tables where relid = 'carillon.${table}'::regclass`,
  )
  await db.close()
  const [counts] = rows
  if (counts === undefined) throw new Error(`expected the statistics of ${table}, got none`)
  return counts
}

/*
 * Few updates, so that no result depends on whether Postgres removes old versions of rows in between: a transaction of another test
 * may keep it from doing so.
 */

test('no heartbeat writes to an index of workers, because half of each page is left free', async () => {
  expect(await countUpdates('workers', sendHeartbeats)).toEqual({ indexed: 0, all: 100 })

  const filled = await countUpdates('workers', sendHeartbeats, 'set (fillfactor = 100)')
  expect(filled.all).toBe(100)
  expect(filled.indexed).toBeGreaterThan(0)
})

test('no slice of a service writes to an index of service_turns, whose pages are filled completely', async () => {
  expect(await countUpdates('service_turns', storeSlices)).toEqual({ indexed: 0, all: 8 })
})
