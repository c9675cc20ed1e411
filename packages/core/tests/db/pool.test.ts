import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb, type Tx } from '../../src/db/database.ts'
import { createPool, type PoolOptions } from '../../src/db/pool.ts'
import { transact, transactPipelined, transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { fakeTimers, startFaultProxy, withSettings } from '../fault-proxy.ts'
import { sql } from '../sql.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase({ content: 'empty' })
  await database.pool.query('create table public.counters (name text primary key, value int not null)')
  await database.pool.query(`insert into public.counters values ('a', 0), ('b', 0)`)
})
afterAll(() => database[Symbol.asyncDispose]())

/** A clock without the backoff between two tries. */
const CLOCK = { ...systemClock, sleep: () => Promise.resolve() }

interface DisposablePool extends AsyncDisposable {
  readonly pool: pg.Pool
}

function singlePool(options: Partial<PoolOptions> = {}): DisposablePool {
  const pool = createPool({ connectionString: database.url, maxConnections: 1, ...options })
  return { pool, [Symbol.asyncDispose]: () => pool.end() }
}

async function pidOf(client: pg.Pool | pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}

/** The time limit of the driver itself, for a socket on which no answer will come. */
const QUERY_TIMEOUT_MS = 30_000
const LIMITS = [
  { name: 'idle_in_transaction_session_timeout', setting: 10_000 },
  { name: 'lock_timeout', setting: 5000 },
  { name: 'statement_timeout', setting: 25_000 },
]

const READ_LIMITS = sql`
  select name, setting::int from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name`

test.each([
  ['plans its statements once', { isPrepared: true }],
  ['acts as a role', { role: 'pg_monitor' }],
])(
  'every connection of a pool that %s has a time limit for statements, locks and idle transactions',
  async (_, options) => {
    await using disposable = singlePool(options)

    expect((await READ_LIMITS.execute(createDb(disposable.pool))).rows).toEqual(LIMITS)
    expect(disposable.pool.options).toMatchObject({
      query_timeout: QUERY_TIMEOUT_MS,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    })
  },
)

test('a pool behind a pooler changes no session setting: each transaction of the API sets its limits for itself only', async () => {
  await using migrated = await createDatabase()
  await using disposable = singlePool({ connectionString: migrated.url })
  const db = createDb(disposable.pool)
  const none = LIMITS.map(({ name }) => ({ name, setting: 0 }))
  const within = (work: () => void): Promise<unknown> =>
    transactScoped(db, CLOCK, { tenantId: 'acme', projectId: 'web' }, async (tx) => {
      const { rows } = await READ_LIMITS.execute(tx)
      work()
      return rows
    })

  expect(await within(() => undefined)).toEqual(LIMITS)
  expect((await READ_LIMITS.execute(db)).rows).toEqual(none)
  await expect(
    within(() => {
      throw new Error('thrown by the test')
    }),
  ).rejects.toThrow('thrown by the test')
  expect((await READ_LIMITS.execute(db)).rows).toEqual(none)
  expect(disposable.pool.options).toMatchObject({
    query_timeout: QUERY_TIMEOUT_MS,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  })
})

test.each([
  ['no options', {}, 'on'],
  ['options of its own', { options: '-c geqo=off' }, 'off'],
  ['a role of its own', { options: '-c role=pg_read_all_data -c geqo=off', application_name: 'mine' }, 'off'],
])('a pool acts as its role on every connection, even if its URL has %s', async (_what, settings, geqo) => {
  const connectionString = withSettings(database.url, settings)
  await using disposable = singlePool({ connectionString, role: 'pg_monitor', isPrepared: true })

  const { rows } = await disposable.pool.query(`
    select current_user::text as role, current_setting('plan_cache_mode') as plans, current_setting('geqo') as geqo`)

  expect(rows).toEqual([{ role: 'pg_monitor', plans: 'force_generic_plan', geqo }])
})

test('a connection that gets no answer is discarded', async () => {
  await using proxy = await startFaultProxy(database.url)
  await using disposable = singlePool({ connectionString: proxy.url })
  const { pool } = disposable
  const db = createDb(pool)
  const first = await pidOf(pool)
  proxy.blackhole()
  using timers = fakeTimers()

  await Promise.all([
    expect(sql`select 1`.execute(db)).rejects.toThrow('Query read timeout'),
    timers.advance(QUERY_TIMEOUT_MS),
  ])

  expect(await pidOf(pool)).not.toBe(first)
  expect(pool.totalCount).toBe(1)
})

test('a transaction on a connection that gets no answer ends at once, without waiting for a rollback', async () => {
  await using proxy = await startFaultProxy(database.url)
  await using disposable = singlePool({ connectionString: proxy.url })
  const { pool } = disposable
  const db = createDb(pool)
  using timers = fakeTimers()
  let isCut = false

  const work = transact(db, CLOCK, async (tx) => {
    await sql`select 1`.execute(tx)
    if (!isCut) proxy.blackhole()
    isCut = true
    await sql`select 2`.execute(tx)
  })
  await Promise.all([
    expect(work).rejects.toThrow('Query read timeout'),
    proxy.whenDropped('select 2').then(() => timers.advance(QUERY_TIMEOUT_MS)),
  ])

  expect(proxy.dropped()).not.toContain('rollback')
  expect(await transact(db, CLOCK, (tx) => valueOf(tx, 'a'))).toBe(0)
})

test('a query fails if the server ends its session, and the next query gets another connection', async () => {
  await using disposable = singlePool()
  const { pool } = disposable
  const client = await pool.connect()
  const pid = await pidOf(client)
  const ended = new Promise((resolve) => client.once('end', resolve))

  await Promise.all([
    expect(client.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57P01' }),
    database.pool.query('select pg_terminate_backend($1)', [pid]),
  ])
  await ended
  client.release()

  expect(await pidOf(pool)).not.toBe(pid)
})

test('a transaction whose session the server ends between two statements is rolled back as a whole', async () => {
  await using disposable = singlePool()
  const { pool } = disposable
  const db = createDb(pool)

  const work = transact(db, CLOCK, async (tx) => {
    await sql`update public.counters set value = value + 1 where name = 'a'`.execute(tx)
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
    await sql`update public.counters set value = value + 1 where name = 'b'`.execute(tx)
  })

  await expect(work).rejects.toThrow(/terminat|not queryable/)
  expect(await transact(db, CLOCK, async (tx) => [await valueOf(tx, 'a'), await valueOf(tx, 'b')])).toEqual([0, 0])
})

test("an application's own pool may be of a version of pg without the status of a transaction", async () => {
  await using disposable = singlePool()
  const { pool } = disposable
  pool.on('connect', (client) => Object.defineProperty(client, 'getTransactionStatus', { value: undefined }))
  const db = createDb(pool)

  expect(await transact(db, CLOCK, (tx) => valueOf(tx, 'a'))).toBe(0)
  expect(await transact(db, CLOCK, (tx) => valueOf(tx, 'b'))).toBe(0)
})

test.each([
  ['that looks them up by itself', { isPrepared: true }],
  ['behind a pooler', {}],
])('the queries after a pipelined commit find the tables of Carillon on a pool %s', async (_what, options) => {
  await using migrated = await createDatabase()
  await using disposable = singlePool({ connectionString: migrated.url, ...options })

  const { seen } = await transactPipelined(createDb(disposable.pool), CLOCK, {
    work: async (tx) => ({ result: null, last: sql`select from schedules`.execute(tx), notBefore: null }),
    look: async (db) => (await sql`select from schedules`.execute(db)).rows,
  })

  expect(seen).toEqual([])
})

test('a connection that breaks while it is idle is reported and replaced', async () => {
  const reported = Promise.withResolvers<Error>()
  await using disposable = singlePool({ onIdleError: reported.resolve })
  const { pool } = disposable
  const pid = await pidOf(pool)

  await database.pool.query('select pg_terminate_backend($1)', [pid])

  expect(await reported.promise).toMatchObject({ code: '57P01' })
  expect(await pidOf(pool)).not.toBe(pid)
})

test('a connection that breaks while the pool ends is not reported', async () => {
  const reported: Error[] = []
  const { pool } = singlePool({ onIdleError: (error) => reported.push(error) })
  await pidOf(pool)

  const ended = pool.end()
  pool.emit('error', new Error('terminating connection due to administrator command'))
  await ended

  expect(reported).toEqual([])
})

test('a connection is reused after a failed statement, outside of a transaction and after a rollback', async () => {
  await using disposable = singlePool()
  const { pool } = disposable
  const pid = await pidOf(pool)
  const client = await pool.connect()
  await expect(client.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
  client.release()
  expect(await pidOf(pool)).toBe(pid)

  const failing = transact(createDb(pool), CLOCK, async (tx) => {
    await sql`update public.counters set value = 7 where name = 'a'`.execute(tx)
    await sql`select 1 / 0`.execute(tx)
  })
  await expect(failing).rejects.toMatchObject({ code: '22012' })

  expect(await pidOf(pool)).toBe(pid)
  expect((await pool.query(`select value from public.counters where name = 'a'`)).rows).toEqual([{ value: 0 }])
})

test('the server ends a transaction that is idle for too long, and the pool discards its connection', async () => {
  const settings = { idle_in_transaction_session_timeout: '50' }
  await using disposable = singlePool({ connectionString: withSettings(database.url, settings) })
  const { pool } = disposable
  const client = await pool.connect()
  const ended = new Promise((resolve) => client.once('end', resolve))
  await client.query('begin')
  await ended
  await expect(client.query('select 1')).rejects.toThrow('not queryable')
  client.release()

  expect(await pidOf(pool)).toBeGreaterThan(0)
})

test('a statement that waits too long for a lock fails, and the pool can still be used', async () => {
  await using disposable = singlePool({ connectionString: withSettings(database.url, { lock_timeout: '50' }) })
  const { pool } = disposable
  const pid = await pidOf(pool)
  const holder = await database.pool.connect()
  await holder.query(`begin; select from public.counters where name = 'a' for update`)

  await expect(pool.query(`select from public.counters where name = 'a' for update`)).rejects.toMatchObject({
    code: '55P03',
  })
  await holder.query('rollback')
  holder.release()

  const client = await pool.connect()
  expect(await pidOf(client)).toBeGreaterThan(0)
  client.release()
  expect(pid).toBeGreaterThan(0)
})

test('two transactions in a deadlock both commit once: the aborted one runs again as a whole', async () => {
  const db = createDb(database.pool)
  const met = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const over = Promise.withResolvers<void>()
  let tries = 0
  const crossing = async (own: 0 | 1, first: string, second: string): Promise<void> => {
    await transact(db, CLOCK, async (tx) => {
      tries += 1
      // Without a backoff the aborted transaction could deadlock with the other one again.
      if (tries > 2) await over.promise
      await sql`set local deadlock_timeout = '20ms'`.execute(tx)
      await sql`update public.counters set value = value + 1 where name = ${first}`.execute(tx)
      met[own].resolve()
      await met[own === 0 ? 1 : 0].promise
      await sql`update public.counters set value = value + 1 where name = ${second}`.execute(tx)
    })
    over.resolve()
  }

  await Promise.all([crossing(0, 'a', 'b'), crossing(1, 'b', 'a')])

  expect(tries).toBe(3)
  const { rows } = await database.pool.query('select name, value from public.counters order by name')
  expect(rows).toEqual([
    { name: 'a', value: 2 },
    { name: 'b', value: 2 },
  ])
  await database.pool.query('update public.counters set value = 0')
})

test('a transaction with a serialization failure runs again as a whole', async () => {
  const db = createDb(database.pool)
  const seen: number[] = []

  await transact(db, CLOCK, async (tx) => {
    await sql`set transaction isolation level repeatable read`.execute(tx)
    const value = await valueOf(tx, 'a')
    seen.push(value)
    if (seen.length === 1) await database.pool.query(`update public.counters set value = 10 where name = 'a'`)
    await sql`update public.counters set value = ${value + 1} where name = 'a'`.execute(tx)
  })

  expect(seen).toEqual([0, 10])
  expect((await database.pool.query(`select value from public.counters where name = 'a'`)).rows).toEqual([
    { value: 11 },
  ])
  await database.pool.query('update public.counters set value = 0')
})

test('a transaction that is aborted every time fails after ten tries, and no other error is retried', async () => {
  const db = createDb(database.pool)
  let tries = 0
  const raise = (code: string): Promise<unknown> =>
    transact(db, CLOCK, (tx) => {
      tries += 1
      return sql`do ${sql.raw(`$$ begin raise exception 'no' using errcode = '${code}'; end $$`)}`.execute(tx)
    })

  await expect(raise('40001')).rejects.toMatchObject({ code: '40001' })
  expect(tries).toBe(10)
  tries = 0
  for (const code of ['23505', '23514', '55P03', '57014']) await expect(raise(code)).rejects.toMatchObject({ code })
  expect(tries).toBe(4)
})

async function valueOf(tx: Tx, name: string): Promise<number> {
  const { rows } = await sql<{ value: number }>`select value from public.counters where name = ${name}`.execute(tx)
  return rows[0]?.value ?? Number.NaN
}
