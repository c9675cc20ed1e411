import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'
import { ACCOUNTS, migrationsFolder } from '../modules/migrations-folder.ts'

const BEFORE = 15
const AFTER = 16

test('migrating down from 0016 restores the schema of 0015, and up again that of 0016', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  const before = await dumpSchema(pool)
  await migrate(pool, { to: AFTER })
  const after = await dumpSchema(pool)

  await migrateDown(pool, { to: BEFORE })
  expect(await dumpSchema(pool)).toBe(before)
  await migrate(pool, { to: AFTER })
  expect(await dumpSchema(pool)).toBe(after)
})

test('going below 0016 removes the findings of modules, and keeps the others', async () => {
  await using database = await createDatabase()
  const { pool } = database
  await pool.query(`
    insert into carillon.audits (
      id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count, unreadable_count, truncated_count,
      finding_count, repaired_count
    )
    values ('01995c0e-0000-7000-8000-00000000000b', false, now(), now(), now(), now(), 0, 0, 0, 0, 2, 0);
    insert into carillon.audit_findings (audit_id, ordinal, kind, detail, is_repaired, found_at)
    values
      ('01995c0e-0000-7000-8000-00000000000b', 1, 'module_check', 'a balance is below zero', false, now()),
      ('01995c0e-0000-7000-8000-00000000000b', 2, 'slot_lost', 'lost', false, now())`)

  await migrateDown(pool, { to: BEFORE })

  const { rows } = await pool.query<{ kind: string }>('select kind from carillon.audit_findings')
  expect(rows).toEqual([{ kind: 'slot_lost' }])
})

test('going below 0016 reverts the migrations of the given modules first, and refuses to lose those of another one', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const billing = {
    name: 'billing',
    migrations: migrationsFolder({ '0001_accounts': [ACCOUNTS, 'drop table billing_accounts'] }),
  }
  await migrate(pool, { modules: [billing] })

  await expect(migrateDown(pool, { to: BEFORE })).rejects.toMatchObject({
    code: 'schema_changed',
    message: expect.stringMatching(/^expected no module with migrations, got billing: run/) as string,
  })
  const { reverted } = await migrateDown(pool, { to: BEFORE, modules: [billing] })

  expect(reverted).toEqual(expect.arrayContaining(['billing/0001_accounts', '0016_modules']))
})
