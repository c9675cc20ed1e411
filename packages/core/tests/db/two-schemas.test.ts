import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'

import { lockSecretName } from '../../src/access/store/secrets.ts'
import { createDb, type Db, type Tx } from '../../src/db/database.ts'
import { lockMigrations } from '../../src/db/locks.ts'
import { migrate } from '../../src/db/migrate.ts'
import { Listener, notifyCancel, notifyDue } from '../../src/db/notify.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { tryLockKey } from '../../src/schedules/store/answers.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { CALLER } from '../pipeline.ts'
import { sql } from '../sql.ts'

/* Two Carillons in one database. The second one runs on a pool whose connections have no search path. */

const SCHEMAS = ['carillon', 'second_one'] as const
const RUN_ID = '018f0000-0000-7000-8000-000000000001'
const OTHER_RUN_ID = '018f0000-0000-7000-8000-000000000002'
const END = 'end of the test'

let database: TestDatabase
let dbs: readonly [Db, Db]
beforeAll(async () => {
  database = await createDatabase()
  const first = createPool({ connectionString: database.url, isPrepared: true })
  const second = createPool({ connectionString: database.url, schema: SCHEMAS[1] })
  await migrate(second)
  dbs = [createDb(first), createDb(second)]
})
afterAll(async () => {
  for (const db of dbs) await db.close()
  await database[Symbol.asyncDispose]()
})

/** Everything that arrives on the channels of both schemas while `act` runs. */
async function heardDuring(act: () => Promise<unknown>): Promise<string[]> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  onTestFinished(() => client.end())
  const heard: string[] = []
  client.on('notification', ({ channel, payload = '' }) => heard.push(`${channel} ${payload}`))
  for (const schema of SCHEMAS) await client.query(`listen ${schema}_agenda; listen ${schema}_cancel`)
  await act()
  await database.pool.query('select pg_notify($1, $2)', ['carillon_cancel', END])
  while (heard.at(-1) !== `carillon_cancel ${END}`) await client.query('select 1')
  return heard.slice(0, -1)
}

test.each([0, 1] as const)(
  'a notification of the schema number %i reaches only the channels of its own schema',
  async (n) => {
    const heard = await heardDuring(async () => {
      await transact(dbs[n], systemClock, (tx) => notifyDue(tx, { lanes: ['http.7'] }))
      await notifyCancel(dbs[n], { runIds: [RUN_ID] })
    })

    expect(heard).toEqual([`${SCHEMAS[n]}_agenda http.7`, `${SCHEMAS[n]}_cancel ${RUN_ID}`])
  },
)

/** Starts a listener of a schema. Returns what it receives, which grows. */
async function listenTo(schema: string): Promise<string[]> {
  const heard: string[] = []
  const listener = new Listener({
    connectionString: database.url,
    schema,
    clock: systemClock,
    events: new Events(),
    onAgenda: (lane) => heard.push(`due in ${lane}`),
    onCancel: (runId) => heard.push(`cancel ${runId}`),
  })
  onTestFinished(() => listener.stop())
  await listener.runOnce()
  // A new connection counts as a notification of any lane.
  expect(heard.splice(0)).toEqual(['due in '])
  return heard
}

test('a listener receives only the notifications of its own schema', async () => {
  const [first, second] = [await listenTo(SCHEMAS[0]), await listenTo(SCHEMAS[1])]
  for (const [n, db] of dbs.entries()) {
    await transact(db, systemClock, (tx) => notifyDue(tx, { lanes: [`http.${n}`] }))
    await notifyCancel(db, { runIds: [n === 0 ? RUN_ID : OTHER_RUN_ID] })
  }
  // Postgres delivers notifications in the order of their commits, so a listener that has received its last one has received all before it.
  for (const schema of SCHEMAS) await database.pool.query('select pg_notify($1, $2)', [`${schema}_cancel`, END])
  await vi.waitFor(() => {
    for (const heard of [first, second]) expect(heard).toContain(`cancel ${END}`)
  })

  expect(first).toEqual(['due in http.0', `cancel ${RUN_ID}`, `cancel ${END}`])
  expect(second).toEqual(['due in http.1', `cancel ${OTHER_RUN_ID}`, `cancel ${END}`])
})

test('a Db that names another schema than its pool reads its own schema, in a transaction and outside of one', async () => {
  const pool = createPool({ connectionString: database.url, schema: SCHEMAS[0], isPrepared: true })
  const db = createDb(pool, { schema: SCHEMAS[1] })
  onTestFinished(() => db.close())
  const readSchema = async (on: Db | Tx): Promise<unknown> => {
    const { rows } = await sql<{ schema: string }>`select current_schema()::text as schema`.execute(on)
    return rows
  }

  expect(await readSchema(db)).toEqual([{ schema: SCHEMAS[1] }])
  expect(await transact(db, systemClock, readSchema)).toEqual([{ schema: SCHEMAS[1] }])
})

/** Postgres' code for a lock that was not granted in time. */
const NOT_GRANTED = '55P03'

/** Takes a lock until the transaction ends. False if another transaction holds it. */
async function waitBriefly(tx: Tx, lock: (tx: Tx) => Promise<unknown>): Promise<boolean> {
  await sql`set local lock_timeout = '100ms'`.execute(tx)
  try {
    await lock(tx)
    return true
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === NOT_GRANTED) return false
    throw error
  }
}

const LOCKS: readonly { what: string; take: (tx: Tx) => Promise<boolean> }[] = [
  { what: 'an idempotency key', take: (tx) => tryLockKey(tx, { ...CALLER, key: 'the-same' }) },
  {
    what: 'a quota',
    // More than one schedule at a time: the lock is exclusive.
    take: (tx) => waitBriefly(tx, () => sql`select check_quota('acme', 'web', null, 1000, 2)`.execute(tx)),
  },
  {
    what: 'the name of a secret',
    take: (tx) => waitBriefly(tx, () => lockSecretName(tx, { tenantId: 'acme', projectId: 'web', name: 'token' })),
  },
  { what: 'migrations', take: (tx) => waitBriefly(tx, () => lockMigrations(clientOf(tx), tx.schema)) },
  { what: 'months', take: (tx) => waitBriefly(tx, () => sql`select lock_months()`.execute(tx)) },
]

/** A client of the driver that sends its queries in a transaction. */
function clientOf(tx: Tx): pg.ClientBase {
  const query = (text: string, parameters: readonly unknown[]): unknown => tx.run({ text, parameters })
  return { query } as unknown as pg.ClientBase
}

class Taken extends Error {
  readonly isTaken: boolean

  constructor(isTaken: boolean) {
    super('rolls the transaction back, because a lock that was not granted has aborted it')
    this.isTaken = isTaken
  }
}

/** Whether a second transaction gets the lock. Rolls back what it did. */
async function canTake(db: Db, take: (tx: Tx) => Promise<boolean>): Promise<boolean> {
  const attempt = transact(db, systemClock, async (tx) => {
    throw new Taken(await take(tx))
  })
  const outcome: unknown = await attempt.catch((error: unknown) => error)
  if (outcome instanceof Taken) return outcome.isTaken
  throw outcome
}

test.each(LOCKS)('the lock of $what in one schema does not stop the other schema, only its own', async ({ take }) => {
  const [first, second] = dbs
  for (const [holder, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const granted = await transact(holder, systemClock, async (tx) => [
      await take(tx),
      await canTake(holder, take),
      await canTake(other, take),
    ])

    expect(granted).toEqual([true, false, true])
  }
})
