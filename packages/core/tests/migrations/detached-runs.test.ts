import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

const SCHEDULE = '01995c0e-0000-7000-8000-00000000000b'
const WORKER = '01995c0e-0000-7000-8000-00000000000c'

test.each([
  [13, 14],
  [14, 15],
])('migrating down to %i restores its schema, and up again that of %i', async (before, after) => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: before })
  const then = await dumpSchema(pool)
  await migrate(pool, { to: after })
  const now = await dumpSchema(pool)

  await migrateDown(pool, { to: before })
  expect(await dumpSchema(pool)).toBe(then)
  await migrate(pool, { to: after })
  expect(await dumpSchema(pool)).toBe(now)
})

test('going below 0015 makes detached runs wait for a worker, and their open attempts lost', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: 15 })
  const slot = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth(), 2))
  await pool.query(
    `insert into carillon.runs (
       schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id, begun_at,
       started_at, due_at, waits_for, lane
     )
     values ($1, $2, $1, 'acme', 'web', 1, 'schedule', 'detached', 1, 1, $3, now(), now(), now(), 'completion', 'http~7')`,
    [SCHEDULE, slot, WORKER],
  )

  await migrateDown(pool, { to: 13 })

  const runs = await pool.query('select state, waits_for, lane, worker_id, attempt_count from carillon.runs')
  expect(runs.rows).toEqual([
    { state: 'retrying', waits_for: 'worker', lane: 'http.7', worker_id: null, attempt_count: 1 },
  ])
  const attempts = await pool.query('select attempt, outcome from carillon.attempts')
  expect(attempts.rows).toEqual([{ attempt: 1, outcome: 'lost' }])
})

test('migrating down across 0015 waits until no worker holds a lease; migrating up does not', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: 14 })
  await pool.query(
    `insert into carillon.workers (id, name, target_kinds, started_at, heartbeat_at, lease_expires_at)
     values ($1, 'old', '{http}', now(), now(), now() + interval '1 hour')`,
    [WORKER],
  )
  expect(await migrate(pool, { to: 15 })).toEqual({ applied: ['0015_detached_runs'] })

  const down = migrateDown(pool, { to: 14 })
  await pool.query('update carillon.workers set lease_expires_at = now()')
  expect(await down).toEqual({ reverted: ['0015_detached_runs'] })
})
