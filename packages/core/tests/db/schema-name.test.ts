import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { migrate, migrateDown, migrationStatus } from '../../src/db/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { checkedSchema, isSchemaName, RESERVED_WORDS } from '../../src/db/schema-name.ts'
import { renewLogins } from '../../src/db/server.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { createDatabase } from '../database.ts'

const SCHEMA = 'second_one'

async function emptyDatabase(): Promise<{ readonly url: string; readonly pool: pg.Pool }> {
  const database = await createDatabase({ content: 'empty' })
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database
}

test('the words that no schema may be named are those that Postgres reserves or allows for columns only', async () => {
  const { pool } = await emptyDatabase()

  const { rows } = await pool.query<{ word: string }>(
    `select word from pg_get_keywords() where catcode in ('R', 'T', 'C')`,
  )

  expect([...RESERVED_WORDS].toSorted()).toEqual(rows.map(({ word }) => word).toSorted())
  expect([...RESERVED_WORDS].filter(isSchemaName)).toEqual([])
  expect(() => checkedSchema('user')).toThrow(/no reserved word of Postgres, got "user"$/)
})

test('no Carillon can have the schema that the migrations of another one drop', () => {
  expect(isSchemaName('carillon_jobs')).toBe(false)
  expect(isSchemaName('billing_jobs')).toBe(true)
})

test('migrating a schema of another name up, and down to 0, leaves the schemas of an application alone', async () => {
  const { pool } = await emptyDatabase()
  for (const bystander of [`${SCHEMA}_jobs`, 'carillon_jobs']) {
    await pool.query(`create schema ${bystander}; create table ${bystander}.orders as select 1 as id`)
  }

  await migrate(pool, { schema: SCHEMA })
  await migrateDown(pool, { to: 0, schema: SCHEMA })

  for (const bystander of [`${SCHEMA}_jobs`, 'carillon_jobs']) {
    expect((await pool.query(`select id from ${bystander}.orders`)).rows).toEqual([{ id: 1 }])
  }
  const { rows } = await pool.query('select to_regnamespace($1) as schema', [SCHEMA])
  expect(rows).toEqual([{ schema: null }])
})

test.each([
  ['a table', `create table ${SCHEMA}.orders ()`],
  ['a function', `create function ${SCHEMA}.total() returns int language sql return 1`],
])('a schema in which an application has %s is refused and stays as it is', async (_what, object) => {
  const { pool } = await emptyDatabase()
  await pool.query(`create schema ${SCHEMA}; ${object}`)

  await expect(migrate(pool, { schema: SCHEMA })).rejects.toMatchObject({
    code: 'schema_changed',
    message: expect.stringMatching(/^expected an empty schema second_one .*: name another schema/) as string,
  })

  const { rows } = await pool.query('select to_regclass($1) as migrations', [`${SCHEMA}.migrations`])
  expect(rows).toEqual([{ migrations: null }])
})

test('an empty schema of an administrator is used, even if its owner may not create schemas', async () => {
  const { url, pool } = await emptyDatabase()
  const owner = `owner_${crypto.randomUUID().replaceAll('-', '')}`
  await pool.query(`create role ${owner}; create schema ${SCHEMA} authorization ${owner}`)
  const owned = createPool({ connectionString: url, schema: SCHEMA, role: owner })

  await migrate(owned, { to: 1 })

  expect((await migrationStatus(owned)).applied).toMatchObject([{ number: 1 }])
  await owned.end()
})

test('logins are created only for a name that can be a schema', async () => {
  const { pool } = await emptyDatabase()

  await expect(renewLogins(pool, () => 'secret', 'x; drop table orders')).rejects.toMatchObject({
    code: 'invalid_input',
  })
})

test('the doctor examines the schema that an application names beside a pool of its own', async () => {
  const { url } = await emptyDatabase()
  const pool = new pg.Pool({ connectionString: url })
  await migrate(pool, { schema: SCHEMA })

  const checks = await new Doctor({ pool, schema: SCHEMA }).examine()
  const others = await new Doctor({ pool }).examine()

  expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
  expect(checks.map(({ name }) => name)).toContain('audit')
  expect(others.find(({ name }) => name === 'schema')).toMatchObject({ status: 'failed' })
  await pool.end()
})
