import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDatabase, type TestDatabase } from '../database.ts'

/** Tables of the installation, whose rows belong to no tenant. */
const WITHOUT_TENANT = [
  'audits',
  'callback_key',
  'feed_floor',
  'migrations',
  'module_migrations',
  'modules',
  'service_turns',
  'workers',
]
/** Tables whose rows belong to a tenant and to no project. */
const WITHOUT_PROJECT = ['tenants']

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

interface ForeignKey {
  name: string
  target: string
  columns: string[]
  target_columns: string[]
}

test('no table has a column for a credential: a run acts by its grant (I8)', async () => {
  const { rows } = await database.pool.query(
    `select table_name, column_name from information_schema.columns
     where table_schema = 'carillon' and column_name in ('session_id', 'oauth_token', 'api_key', 'secret')`,
  )

  expect(rows).toEqual([])
})

test('every table but those of the installation has columns for the tenant and the project of its rows', async () => {
  const lacking = async (column: string): Promise<string[]> => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select relname as name from pg_class
       where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p')
         and not exists (
           select from pg_attribute where attrelid = pg_class.oid and attname = $1 and not attisdropped
         )
       order by relname`,
      [column],
    )
    return rows.map(({ name }) => name)
  }

  expect(await lacking('tenant_id')).toEqual(WITHOUT_TENANT)
  expect(await lacking('project_id')).toEqual([...WITHOUT_TENANT, ...WITHOUT_PROJECT].toSorted())
})

test('every foreign key between tables of tenants includes tenant and project, so no row refers to another tenant (I9)', async () => {
  const { rows } = await database.pool.query<ForeignKey>(
    `select conname as name, target.relname as target,
       array(select attname::text from unnest(conkey) as number join pg_attribute on attrelid = conrelid and attnum = number)
         as columns,
       array(select attname::text from unnest(confkey) as number join pg_attribute on attrelid = confrelid and attnum = number)
         as target_columns
     from pg_constraint join pg_class as target on target.oid = confrelid
     where connamespace = 'carillon'::regnamespace and contype = 'f'`,
  )

  const between = rows.filter(({ target }) => !WITHOUT_TENANT.includes(target))
  expect(between.length).toBeGreaterThan(0)
  for (const { name, columns, target_columns } of between) {
    expect(columns, name).toEqual(expect.arrayContaining(['tenant_id', 'project_id']))
    expect(target_columns, name).toEqual(expect.arrayContaining(['tenant_id', 'project_id']))
  }
})

test('every foreign key has an index, so deleting a referenced row scans no table', async () => {
  const { rows } = await database.pool.query<{ name: string }>(
    `select conname as name from pg_constraint
     where connamespace = 'carillon'::regnamespace and contype = 'f' and conparentid = 0
       and not exists (
         select from pg_index where indrelid = conrelid and indpred is null and indkey[0] = any(conkey)
       )`,
  )

  expect(rows).toEqual([])
})
