import { metrics } from '@opentelemetry/api'
import { expect, test } from 'vitest'

import { columns, text } from '../../src/db/columns.ts'
import { createDb } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { workerRole } from '../../src/db/schema-name.ts'
import { sql } from '../../src/db/sql.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { sharedDeps } from '../../src/modules/deps.ts'
import type { ModuleDeps } from '../../src/ports/module.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ACCOUNTS, migrationsFolder } from './migrations-folder.ts'

const ACME = { tenantId: 'acme', projectId: 'web' }
const PARTS = {
  clock: systemClock,
  events: new Events(),
  meter: metrics.getMeter('test'),
  secrets: { resolve: () => Promise.reject(new Error('no secrets')) },
  outbound: { send: () => Promise.reject(new Error('no calls')), refusalOf: () => undefined },
}

async function billedDatabase(): Promise<TestDatabase> {
  const database = await createDatabase()
  const migrations = migrationsFolder({ '0001_accounts': [ACCOUNTS, ''] })
  await migrate(database.pool, { modules: [{ name: 'billing', migrations }] })
  await database.pool.query(`
    insert into carillon.billing_accounts values ('acme', 'web', gen_random_uuid(), 1), ('globex', 'web', gen_random_uuid(), 2)`)
  return database
}

/** How many accounts a transaction of the module sees in the project of ACME. */
async function seen({ transact }: Pick<ModuleDeps, 'transact'>): Promise<number> {
  const rows = await transact(ACME, (tx) => sql`select from billing_accounts`.execute(tx))
  return rows.length
}

test('a module sees one project in a transaction of a server and of a worker alike', async () => {
  await using database = await billedDatabase()
  const pool = createPool({ connectionString: database.url, role: workerRole() })
  const inWorker = sharedDeps({ worker: createDb(pool) }, PARTS).of('billing')
  const inServer = sharedDeps({ api: createDb(database.pool) }, PARTS).of('billing')
  const inBoth = sharedDeps({ api: createDb(database.pool), worker: createDb(pool) }, PARTS).of('billing')

  expect([await seen(inWorker), await seen(inServer), await seen(inBoth)]).toEqual([1, 1, 1])
  // The name of the project is gone with its transaction.
  expect(await sql`select from billing_accounts`.execute(createDb(pool))).toHaveLength(2)
  expect([inWorker.db === undefined, inServer.db === undefined]).toEqual([false, true])
  const roleOf = ({ transact }: Pick<ModuleDeps, 'transact'>): Promise<unknown> =>
    transact(ACME, (tx) => sql`select ${columns('session', { user: text.as(sql`current_user::text`) })}`.execute(tx))
  expect(await roleOf(inBoth)).toEqual([{ user: 'carillon_api' }])
  await pool.end()
})

test('a module completes runs of any project in a worker, and in a server within a transaction only', async () => {
  await using database = await createDatabase()
  const pool = createPool({ connectionString: database.url, role: workerRole() })
  const inWorker = sharedDeps({ worker: createDb(pool) }, PARTS).of('billing')
  const inServer = sharedDeps({ api: createDb(database.pool) }, PARTS).of('billing')
  const attempt = { runId: '01995c0e-0000-7000-8000-00000000000b', attempt: 1 }

  expect(await inWorker.runs.complete(null, attempt, { outcome: 'cancelled' })).toEqual({ kind: 'unknown' })
  expect(await inServer.transact(ACME, (tx) => inServer.runs.complete(tx, attempt, { outcome: 'cancelled' }))).toEqual({
    kind: 'unknown',
  })
  await expect(inServer.runs.complete(null, attempt, { outcome: 'cancelled' })).rejects.toThrow(
    'expected a transaction of `transact`',
  )
  await expect(inServer.runs.heartbeat(null, attempt, 1000)).rejects.toThrow('expected a transaction of `transact`')
  await pool.end()
})
