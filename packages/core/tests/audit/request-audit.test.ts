import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { Events } from '../../src/kernel/events.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { ScriptedTarget } from '../scripted-target.ts'

test('two requests cause one audit, which a worker does', async () => {
  await using database = await createDatabase()
  const target = new ScriptedTarget()
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[target.kind, target]]) })
  const events = new Events()
  const audited = new Promise((resolve) => events.on('audit.finished', resolve))

  await scheduler.requestAudit()
  const requestedAt = await scheduler.requestAudit()
  await using worker = new Worker({ databaseUrl: database.url, targets: [target], events })
  await worker.start()
  await audited

  expect(await scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: 0 })
  expect((await scheduler.latestAudit())?.startedAt).toBeGreaterThanOrEqual(requestedAt)
  const { rows } = await database.pool.query('select name, requested_at from carillon.service_turns where name = $1', [
    'audit',
  ])
  expect(rows).toEqual([{ name: 'audit', requested_at: null }])
})

test('a request gets its instant before a worker can see it, so no audit that serves it is older than the request', async () => {
  await using database = await createDatabase()
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map() })

  const requestedAt = await scheduler.requestAudit()

  const { rows } = await database.pool.query<{ requested_at: Date; next_at: Date }>(
    'select requested_at, next_at from carillon.service_turns',
  )
  expect(rows).toEqual([{ requested_at: new Date(requestedAt), next_at: new Date(requestedAt) }])
})

test('a request makes the audit due while no worker has the turn', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const scheduler = new Scheduler({ db: createDb(pool), targets: new Map() })
  await pool.query(`insert into carillon.service_turns (name, next_at) values ('audit', now() + interval '1 hour')`)

  const requestedAt = await scheduler.requestAudit()

  const { rows } = await pool.query('select next_at, worker_id, until from carillon.service_turns')
  expect(rows).toEqual([{ next_at: new Date(requestedAt), worker_id: null, until: null }])
})

test('a request shortens the turn of a worker that rests, which may have died, but not that of a slice in progress', async () => {
  await using database = await createDatabase()
  const { pool } = database
  const scheduler = new Scheduler({ db: createDb(pool), targets: new Map() })
  const untilOf = async (nextIn: string): Promise<number> => {
    await pool.query('delete from carillon.service_turns')
    await pool.query(
      `insert into carillon.service_turns (name, next_at, worker_id, until)
       values ('audit', now() + $1::interval, gen_random_uuid(), now() + interval '1 hour')`,
      [nextIn],
    )
    const requestedAt = await scheduler.requestAudit()
    const { rows } = await pool.query<{ until: Date }>('select until from carillon.service_turns')
    return (rows[0]?.until.getTime() ?? Number.NaN) - requestedAt
  }

  expect(await untilOf('50 minutes')).toBe(10_000)
  expect(await untilOf('-1 seconds')).toBeGreaterThan(3_000_000)
})
