import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import { lockSecretName } from '../../src/access/store/secrets.ts'
import { createDb, type Db, type Tx } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { notifyCancel, notifyDue } from '../../src/db/notify.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { tryLockKey } from '../../src/schedules/store/answers.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { CALLER } from '../pipeline.ts'
import { sql } from '../sql.ts'

/* Two Carillons in one database. The second one runs on a pool whose connections have no search path. */

const SCHEMAS = ['carillon', 'second_one'] as const
const RUN_ID = '018f0000-0000-7000-8000-000000000001'
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
]

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
