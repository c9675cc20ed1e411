import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

const BEFORE = 11
const AFTER = 12
const SCHEDULE = '01995c0e-0000-7000-8000-00000000000b'

test('migrating down from 0012 restores the schema of 0011, and up again that of 0012', async () => {
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

test('going below 0012 removes what the version before has no word for, and keeps the rest of a history', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: AFTER })
  await pool.query(`
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, auto_pause_threshold, created_by_subject,
      created_at
    )
    values ('${SCHEDULE}', 'acme', 'web', 'user:alice', 'http', 'completed', 1, '${SCHEDULE}', 10, 'user:alice', now());
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, actor_subject, changed_at, scheduled_for
    )
    values
      ('${SCHEDULE}', 'acme', 'web', 'created', 1, 'user:alice', now(), null),
      ('${SCHEDULE}', 'acme', 'web', 'run_requested', 1, 'user:alice', now(), '2026-03-02T09:00:00Z'),
      ('${SCHEDULE}', 'acme', 'web', 'run_cancelled', 1, 'user:alice', now(), '2026-03-02T09:00:00Z'),
      ('${SCHEDULE}', 'acme', 'web', 'grant_renewed', 1, 'user:alice', now(), null)`)

  await migrateDown(pool, { to: BEFORE })

  const { rows } = await pool.query<{ change: string }>('select change from carillon.schedule_changes order by id')
  expect(rows.map(({ change }) => change)).toEqual(['created', 'grant_renewed'])
})
