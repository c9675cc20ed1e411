import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

test('migrating down from 0010 restores the schema of 0009, and up again that of 0010', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: 9 })
  const before = await dumpSchema(pool)
  await migrate(pool, { to: 10 })
  const after = await dumpSchema(pool)

  await migrateDown(pool, { to: 9 })
  expect(await dumpSchema(pool)).toBe(before)
  await migrate(pool, { to: 10 })
  expect(await dumpSchema(pool)).toBe(after)
})

test('an insert of schedules that is in progress ends before migration 0010 renames the functions that it calls', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: 9 })
  const inserting = await pool.connect()
  await inserting.query('begin; lock table carillon.schedules in row exclusive mode')

  const migrating = migrate(pool, { to: 10 })
  const waiting = `select from pg_locks where not granted and relation = 'carillon.schedules'::regclass`
  while ((await inserting.query(waiting)).rowCount === 0);
  await inserting.query(`
    insert into carillon.execution_grants (id, tenant_id, project_id, subject, scopes, created_by_subject, created_at)
    values ('01995c0e-0000-7000-8000-0000000000f0', 'acme', 'web', 'user:alice', '{http:dispatch:*}', 'user:alice', now());
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
      auto_pause_threshold, created_by_subject, created_at
    )
    values (
      '01995c0e-0000-7000-8000-00000000000a', 'acme', 'web', 'user:alice', 'http', 'active', 1,
      '01995c0e-0000-7000-8000-0000000000f0', '2099-01-01', '2099-01-01', 10, 'user:alice', now()
    )`)
  const counted = await inserting.query('select owner_subject from carillon.live_schedules')
  await inserting.query('rollback')
  inserting.release()

  expect(counted.rows).toEqual([{ owner_subject: 'user:alice' }])
  expect(await migrating).toEqual({ applied: ['0010_function_names'] })
})
