import { randomUUID } from 'node:crypto'
import { once } from 'node:events'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { countWork } from '../../src/maintenance/store/gauges.ts'
import { createDatabase, type TestDatabase } from '../database.ts'

/** A replica as far as Postgres can tell: a connection that receives the WAL, and never says how far it has replayed it. */
async function connectReplica({ url, pool }: TestDatabase): Promise<void> {
  const name = `replica_${randomUUID()}`
  const address = new URL(url)
  address.searchParams.set('replication', 'true')
  address.searchParams.set('application_name', name)
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  client.on('error', () => undefined)
  onTestFinished(() => void client.connection.stream.destroy())
  const started = once(client.connection, 'replicationStart')
  const { rows } = await pool.query<{ at: string }>('select pg_current_wal_lsn()::text as at')
  const ended = client.query(`START_REPLICATION PHYSICAL ${rows[0]?.at}`)
  await Promise.race([started, ended])
  // It fails when the test closes the connection.
  ended.catch(() => undefined)
  const streams = `select from pg_stat_replication where application_name = $1 and state = 'streaming'`
  while ((await pool.query(streams, [name])).rowCount === 0);
}

/** The lag as a worker reads it whose role is in these roles. */
async function lagAs({ url, pool }: TestDatabase, ...roles: string[]): Promise<number | null> {
  const role = `lag_reader_${randomUUID().replaceAll('-', '')}`
  await pool.query(`create role ${role} nologin in role ${roles.join(', ')}`)
  const db = createDb(createPool({ connectionString: url, role, isPrepared: true }))
  const { replicationLagSeconds } = await countWork(db, { now: null })
  await db.close()
  await pool.query(`drop role ${role}`)
  return replicationLagSeconds
}

test('the lag of a replica that has caught up is 0, and is hidden from workers whose role is not in pg_monitor', async () => {
  await using database = await createDatabase()
  expect(await lagAs(database, 'carillon_worker', 'pg_monitor')).toBeNull()

  await connectReplica(database)

  expect(await lagAs(database, 'carillon_worker', 'pg_monitor')).toBe(0)
  expect(await lagAs(database, 'carillon_worker')).toBeNull()
})
