import { randomUUID } from 'node:crypto'
import { once } from 'node:events'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { countWork, LAG_COLUMNS } from '../../src/maintenance/store/gauges.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { sql } from '../sql.ts'

type ReplicaConnection = pg.Connection & { sendCopyFromChunk: (chunk: Buffer) => void }

/** A replica as far as Postgres can tell: a connection that receives the WAL. */
async function connectReplica(
  { url, pool }: TestDatabase,
  { saysHowFar }: { readonly saysHowFar: boolean },
): Promise<() => Promise<void>> {
  const name = `replica_${randomUUID()}`
  const address = new URL(url)
  address.searchParams.set('replication', 'true')
  address.searchParams.set('application_name', name)
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  client.on('error', () => undefined)
  const disconnect = (): void => void client.connection.stream.destroy()
  onTestFinished(disconnect)
  const connection = client.connection as ReplicaConnection
  if (saysHowFar) {
    connection.on('copyData', ({ chunk }: { chunk: Buffer }) => connection.sendCopyFromChunk(statusAfter(chunk)))
  }
  const started = once(connection, 'replicationStart')
  const { rows } = await pool.query<{ at: string }>('select pg_current_wal_lsn()::text as at')
  const ended = client.query(`START_REPLICATION PHYSICAL ${rows[0]?.at}`)
  await Promise.race([started, ended])
  // It fails when the test closes the connection.
  ended.catch(() => undefined)
  const streams = `select from pg_stat_replication where application_name = $1 and state = 'streaming'`
  await pollUntil(pool, async () => (await pool.query(streams, [name])).rowCount === 1)
  return async () => {
    disconnect()
    const isConnected = 'select from pg_stat_replication where application_name = $1'
    await pollUntil(pool, async () => (await pool.query(isConnected, [name])).rowCount === 0)
  }
}

/** What a replica answers that has replayed all that this message of Postgres contains or mentions: a standby status update. */
function statusAfter(message: Buffer): Buffer {
  const isWal = message.toString('latin1', 0, 1) === 'w'
  // WAL begins after a header of 25 bytes. A keepalive has the end of the WAL where WAL has its start.
  const reached = message.readBigInt64BE(1) + (isWal ? BigInt(message.length - 25) : 0n)
  const status = Buffer.alloc(34)
  status.write('r')
  // Written, flushed and replayed. The clock of the replica stays 0, and it asks for no answer.
  for (const offset of [1, 9, 17]) status.writeBigInt64BE(reached, offset)
  return status
}

async function pollUntil(pool: pg.Pool, isReached: () => Promise<boolean>): Promise<void> {
  // The change happens in another process, so this polls, with a pause on the server's side.
  while (!(await isReached())) await pool.query('select pg_sleep(0.02)')
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

test('a replica that says how far it has replayed has a lag, one that is silent has none, and workers outside pg_monitor see neither', async () => {
  await using database = await createDatabase()
  expect(await lagAs(database, 'carillon_worker', 'pg_monitor')).toBeNull()

  const disconnect = await connectReplica(database, { saysHowFar: false })
  expect(await lagAs(database, 'carillon_worker', 'pg_monitor')).toBeNull()
  await disconnect()

  await connectReplica(database, { saysHowFar: true })
  // Other tests write to the same Postgres, so the lag is a little more than 0, and unknown while WAL is on its way.
  let lag: number | null = null
  await pollUntil(database.pool, async () => (lag = await lagAs(database, 'carillon_worker', 'pg_monitor')) !== null)
  expect(lag).toBeGreaterThanOrEqual(0)
  expect(lag).toBeLessThan(60)
  expect(await lagAs(database, 'carillon_worker')).toBeNull()
})

test.each([
  ['none', 'that is silent', null, `('streaming', null::interval, null::pg_lsn, '0/20'::pg_lsn)`],
  ['0', 'that has replayed all', 0, `('streaming', null::interval, '0/20'::pg_lsn, '0/20'::pg_lsn)`],
  ['none', 'that has not replayed all', null, `('streaming', null::interval, '0/10'::pg_lsn, '0/20'::pg_lsn)`],
  ['none', 'that gets old WAL', null, `('catchup', null::interval, '0/20'::pg_lsn, '0/20'::pg_lsn)`],
  ['3 s', 'whose lag is known', 3, `('catchup', interval '3 s', '0/10'::pg_lsn, '0/20'::pg_lsn)`],
  [
    '3 s',
    'whose lag is known beside a silent one',
    3,
    `('streaming', interval '3 s', '0/10'::pg_lsn, '0/20'::pg_lsn), ('streaming', null, null, '0/20')`,
  ],
])('the lag is %s for a replica %s', async (_lag, _replica, seconds, replicas) => {
  await using database = await createDatabase({ content: 'empty' })
  const { rows } = await sql<{ lagSeconds: number | null }>`
    select ${LAG_COLUMNS}
    from (values ${sql.raw(replicas)}) as replicas(state, replay_lag, replay_lsn, sent_lsn)`.execute(
    createDb(database.pool),
  )
  expect(rows).toEqual([{ lagSeconds: seconds }])
})
