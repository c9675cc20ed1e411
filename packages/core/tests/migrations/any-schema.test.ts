import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

test.each(['carillon', 'second_one'])(
  'migrating the schema %s down from the last migration restores the schema of 0010, and up again that of the last',
  async (schema) => {
    await using database = await createDatabase({ content: 'empty' })
    const { pool } = database
    await migrate(pool, { schema, to: 10 })
    const before = await dumpSchema(pool, schema)
    await migrate(pool, { schema })
    const after = await dumpSchema(pool, schema)

    await migrateDown(pool, { schema, to: 10 })
    expect(await dumpSchema(pool, schema)).toBe(before)
    await migrate(pool, { schema })
    expect(await dumpSchema(pool, schema)).toBe(after)
  },
)

/** The definitions of everything in a schema that contains text, months included. */
const DEFINITIONS = `
  select 'function ' || proname as what, pg_get_functiondef(oid) as definition
  from pg_proc where pronamespace = $1::regnamespace
  union all
  select 'policy on ' || polrelid::regclass,
    concat_ws(' ', pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid), polroles::regrole[]::text)
  from pg_policy join pg_class on pg_class.oid = polrelid where relnamespace = $1::regnamespace
  union all
  select 'default of ' || attrelid::regclass || '.' || attname, pg_get_expr(adbin, adrelid)
  from pg_attrdef
  join pg_attribute on attrelid = adrelid and attnum = adnum
  join pg_class on pg_class.oid = adrelid
  where relnamespace = $1::regnamespace
  union all
  select 'constraint ' || conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = $1::regnamespace
  union all
  select 'trigger ' || tgname, pg_get_triggerdef(pg_trigger.oid)
  from pg_trigger join pg_class on pg_class.oid = tgrelid where relnamespace = $1::regnamespace
  union all
  select 'permissions on ' || oid::regclass, relacl::text from pg_class where relnamespace = $1::regnamespace`

test('nothing in a schema of another name refers to the schema carillon or to its roles', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { schema: 'second_one' })

  const { rows } = await pool.query<{ what: string; definition: string | null }>(DEFINITIONS, ['second_one'])

  const kinds = new Set(rows.map(({ what }) => what.split(' ')[0]))
  expect([...kinds]).toEqual(['function', 'policy', 'default', 'constraint', 'trigger', 'permissions'])
  // The settings of a transaction have the same names in every schema.
  const withoutSettings = (text: string): string => text.replaceAll(/current_setting\('carillon\./g, '')
  const foreign = rows.filter(({ definition }) => /\bcarillon[._]/.test(withoutSettings(definition ?? '')))
  expect(foreign).toEqual([])
})
