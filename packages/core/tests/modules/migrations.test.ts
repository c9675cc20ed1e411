import { expect, test } from 'vitest'

import { migrate, migrateDown, migrationStatus } from '../../src/db/migrate.ts'
import { readMigrations } from '../../src/db/migration-history.ts'
import type { ModuleSchema } from '../../src/db/module-history.ts'
import { findDrift } from '../../src/db/schema-drift.ts'
import { createDatabase } from '../database.ts'
import { ACCOUNTS, migrationsFolder } from './migrations-folder.ts'

const DROP = 'drop table billing_accounts'
const LINES: readonly [string, string] = [
  `alter table billing_accounts add column currency text not null default 'EUR'`,
  'alter table billing_accounts drop column currency',
]

function billing(
  scripts: Parameters<typeof migrationsFolder>[0],
  reasons: Readonly<Record<string, string>> = {},
): ModuleSchema {
  return { name: 'billing', migrations: migrationsFolder(scripts), reasons }
}

test('the migrations of a module are applied once, in the order of their numbers, with a history of their own', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const modules = [billing({ '0001_accounts': [ACCOUNTS, DROP], '0002_currencies': LINES })]
  const names = ['billing/0001_accounts', 'billing/0002_currencies']
  expect((await migrationStatus(pool, { modules })).pending).toEqual(names)

  expect(await migrate(pool, { modules })).toEqual({ applied: names })
  expect(await migrate(pool, { modules })).toEqual({ applied: [] })

  const status = await migrationStatus(pool, { modules })
  expect(status.pending).toEqual([])
  expect(status.applied.slice(-2).map(({ name }) => name)).toEqual(names)
})

test('an empty database gets core’s migrations first', async () => {
  await using database = await createDatabase({ content: 'empty' })

  const { applied } = await migrate(database.pool, { modules: [billing({ '0001_accounts': [ACCOUNTS, DROP] })] })

  expect(applied[0]).toMatch(/^0001_/)
  expect(applied.at(-1)).toBe('billing/0001_accounts')
})

test('an earlier schema of core gets no migration of a module', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const modules = [billing({ '0001_accounts': [ACCOUNTS, DROP] })]
  const last = readMigrations().length - 1

  const { applied } = await migrate(database.pool, { to: last, modules })

  expect(applied).toHaveLength(last)
  expect((await migrationStatus(database.pool, { modules })).pending).toContain('billing/0001_accounts')
})

test('the migrations of one module are reverted without those of core', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const modules = [billing({ '0001_accounts': [ACCOUNTS, DROP], '0002_currencies': LINES })]
  await migrate(pool, { modules })

  expect(await migrateDown(pool, { module: 'billing', to: 1, modules })).toEqual({
    reverted: ['billing/0002_currencies'],
  })
  expect(await migrateDown(pool, { module: 'billing', to: 0, modules })).toEqual({
    reverted: ['billing/0001_accounts'],
  })

  expect(await findDrift(pool)).toEqual({ missing: [], unexpected: [] })
  await expect(migrateDown(pool, { module: 'biling', to: 0, modules })).rejects.toThrow(
    'expected the name of a module (billing), got "biling"',
  )
})

test('a migration of a module that was changed after it was applied is rejected', async () => {
  await using database = await createDatabase()
  await migrate(database.pool, { modules: [billing({ '0001_accounts': [ACCOUNTS, DROP] })] })

  const modules = [billing({ '0001_accounts': [`${ACCOUNTS} -- changed`, DROP] })]

  await expect(migrate(database.pool, { modules })).rejects.toMatchObject({ code: 'schema_changed' })
})

test('reasons of a module are added once, are shown as pending before, and stay when it no longer declares them', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const broke = { name: 'billing', reasons: { no_credit: 'the account has no credit' } }
  expect((await migrationStatus(pool, { modules: [broke] })).pending).toEqual(['billing/reason no_credit'])

  expect(await migrate(pool, { modules: [broke] })).toEqual({ applied: ['billing/reason no_credit'] })
  expect(await migrate(pool, { modules: [broke] })).toEqual({ applied: [] })
  await migrate(pool, { modules: [{ name: 'billing', reasons: { no_account: 'there is no account' } }] })

  const { rows } = await pool.query<{ word: string }>(
    `select unnest(enum_range(null::carillon.run_reason))::text as word`,
  )
  expect(rows.map(({ word }) => word).slice(-2)).toEqual(['no_credit', 'no_account'])
  expect(await findDrift(pool)).toEqual({ missing: [], unexpected: [] })
})

test('the tables and reasons of a module are no drift, but what was changed in them by hand is, and so is a stranger’s table', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const reasons = { no_credit: 'the account has no credit' }
  await migrate(pool, { modules: [billing({ '0001_accounts': [ACCOUNTS, DROP] }, reasons)] })
  expect(await findDrift(pool)).toEqual({ missing: [], unexpected: [] })

  await pool.query(`
    alter table carillon.billing_accounts drop column balance;
    create index billing_by_hand on carillon.billing_accounts (id);
    create table carillon.stranger (id integer);
    alter type carillon.run_reason add value 'strange'`)

  const { missing, unexpected } = await findDrift(pool)
  expect(missing).toEqual([
    expect.stringMatching(/^create type run_reason as enum/),
    'create table billing_accounts ( … balance integer not null',
  ])
  expect(unexpected).toEqual([
    expect.stringMatching(/^create type run_reason as enum .*'strange'/),
    'create table stranger (',
    expect.stringMatching(/^CREATE INDEX billing_by_hand/),
  ])
})

type Case = [what: string, script: string, message: string]

test.each<Case>([
  [
    'a table with another name',
    'create table accounts (id integer)',
    'table accounts: expected a name that begins with billing_',
  ],
  [
    'a type with another name',
    `create type currency as enum ('EUR')`,
    'type currency: expected a name that begins with billing_',
  ],
  [
    'a table without a tenant',
    ACCOUNTS.replace('tenant_id text collate "C" not null, ', ''),
    'column "tenant_id" named in key does not exist',
  ],
  [
    'a table without walls',
    ACCOUNTS.replace(`select enable_row_security('billing_accounts');`, ''),
    "table billing_accounts: expected forced row-level security, got none: select enable_row_security('billing_accounts')",
  ],
  [
    'a policy that lets another project in',
    `${ACCOUNTS} create policy open on billing_accounts using (true)`,
    'table billing_accounts: expected the policies that enable_row_security makes, got open',
  ],
  [
    'a table for everybody',
    `${ACCOUNTS} grant select on billing_accounts to public`,
    'table billing_accounts: expected at most delete, insert, select, update to be granted',
  ],
  [
    'a table that may be truncated',
    `${ACCOUNTS} grant truncate on billing_accounts to carillon_api`,
    'got truncate to api',
  ],
  [
    'a table that no purge can empty',
    `${ACCOUNTS} revoke delete on billing_accounts from carillon_api`,
    'table billing_accounts: expected delete to be granted to the role of the API',
  ],
  [
    'a function that runs as its owner',
    `${ACCOUNTS} create function billing_peek() returns bigint language sql security definer as 'select 1::bigint'`,
    'function billing_peek: expected one that runs as its caller, got security definer',
  ],
  [
    'a change of a table of core',
    `${ACCOUNTS} alter table schedules add column billing_note text`,
    'schedules: expected changes of what belongs to billing, got one of this',
  ],
  [
    'a foreign key to a table of core',
    `${ACCOUNTS} alter table billing_accounts add column schedule_id uuid references schedules (id)`,
    'table billing_accounts: expected foreign keys to tables of the module, got one to schedules',
  ],
  [
    'an end of its transaction',
    `${ACCOUNTS} commit`,
    'migration billing/0001_accounts: expected no end of its transaction, got one',
  ],
])('a migration with %s is refused', async (_what, script, message) => {
  await using database = await createDatabase()
  const modules = [billing({ '0001_accounts': [script, DROP] })]

  await expect(migrate(database.pool, { modules })).rejects.toThrow(message)

  expect((await migrationStatus(database.pool, { modules })).pending).toEqual(['billing/0001_accounts'])
})

test('a migration that is refused leaves nothing behind', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const modules = [billing({ '0001_accounts': [`${ACCOUNTS} create table accounts (id integer)`, DROP] })]

  await expect(migrate(pool, { modules })).rejects.toMatchObject({ code: 'module_refused' })

  expect(await findDrift(pool)).toEqual({ missing: [], unexpected: [] })
})

test('a worker that names a tenant and a project sees only their rows in the table of a module', async () => {
  await using database = await createDatabase()
  const { pool } = database
  await migrate(pool, { modules: [billing({ '0001_accounts': [ACCOUNTS, DROP] })] })
  const client = await pool.connect()
  await client.query(`
    insert into carillon.billing_accounts values
      ('acme', 'web', gen_random_uuid(), 1), ('acme', 'shop', gen_random_uuid(), 2), ('globex', 'web', gen_random_uuid(), 3)`)
  const seen = async (setting: string): Promise<number[]> => {
    await client.query(`begin; set local role carillon_worker; ${setting}`)
    const { rows } = await client.query<{ balance: number }>('select balance from carillon.billing_accounts order by 1')
    await client.query('rollback')
    return rows.map(({ balance }) => balance)
  }

  expect(await seen('')).toEqual([1, 2, 3])
  expect(await seen(`set local carillon.tenant_id = 'acme'; set local carillon.project_id = 'shop'`)).toEqual([2])
  expect(await seen(`set local carillon.tenant_id = 'acme'`)).toEqual([])
  client.release()
})
