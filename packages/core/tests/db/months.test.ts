import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { dropPartitions, ensurePartitions, listPartitions } from '../../src/db/months.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { whenBlocked } from '../blocked-statement.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { insertRun, insertSchedule } from '../schema/rows.ts'

let database: TestDatabase
/** Has the permissions of the role carillon_worker, which owns none of the tables. */
let db: Db

beforeAll(async () => {
  database = await createDatabase()
  db = workerDbOf(database)
})
afterAll(async () => {
  await db.close()
  await database[Symbol.asyncDispose]()
})

function workerDbOf({ url }: TestDatabase): Db {
  return createDb(createPool({ connectionString: url, role: 'carillon_worker' }))
}

function month(text: string): { from: Date; to: Date } {
  return { from: new Date(`${text}-01T00:00:00Z`), to: new Date(`${text}-28T00:00:00Z`) }
}

test('missing months are created once for all tables of the ledger, in UTC and across the turn of the year', async () => {
  const span = { from: new Date('2030-11-30T23:59:59.999Z'), to: new Date('2031-01-01T00:00:00Z') }
  const names = ['2030_11', '2030_12', '2031_01'].flatMap((name) => [
    `runs_${name}`,
    `attempts_${name}`,
    `transcripts_${name}`,
  ])

  expect(await ensurePartitions(db, span)).toEqual(names)
  expect(await ensurePartitions(db, span)).toEqual([])

  const made = (await listPartitions(db)).filter(({ from }) => from >= new Date('2030-11-01T00:00:00Z'))
  expect(made.map(({ name }) => name)).toEqual(names)
  expect(made[3]).toEqual({
    table: 'runs',
    name: 'runs_2030_12',
    from: new Date('2030-12-01T00:00:00Z'),
    to: new Date('2031-01-01T00:00:00Z'),
  })
})

test('concurrent calls for the same month create it once', async () => {
  const results = await Promise.all(Array.from({ length: 5 }, () => ensurePartitions(db, month('2032-02'))))

  expect(results.flat().toSorted()).toEqual(['attempts_2032_02', 'runs_2032_02', 'transcripts_2032_02'])
})

test('a partition accepts the slots of its month only, and has the checks and indexes of its table', async () => {
  await ensurePartitions(db, month('2033-03'))
  const scheduleId = await insertSchedule(database.pool)
  await insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2033-03-31T23:59:59.999Z' })

  const { rows } = await database.pool.query(
    `select tableoid::regclass::text as name from carillon.runs where schedule_id = $1`,
    [scheduleId],
  )
  expect(rows).toEqual([{ name: 'carillon.runs_2033_03' }])
  await expect(
    insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2033-04-01T00:00:00Z' }),
  ).rejects.toMatchObject({ code: '23514' })
  await expect(
    insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2033-03-02T00:00:00Z', state: 'skipped' }),
  ).rejects.toMatchObject({ code: '23514' })
  const { rows: indexes } = await database.pool.query(
    `select (select count(*) from pg_index where indrelid = 'carillon.runs'::regclass)
       - (select count(*) from pg_index join pg_inherits on inhrelid = indexrelid
          where indrelid = 'carillon.runs_2033_03'::regclass) as missing`,
  )
  expect(indexes).toEqual([{ missing: '0' }])
})

test('neither runs nor schedules have a fillfactor, nor does a month that is older than the migration that removes it', async () => {
  await using earlier = await createDatabase({ content: 'empty' })
  await migrate(earlier.pool, { to: 8 })
  await earlier.pool.query(`select carillon.create_month('runs', '2034-04-01')`)
  await migrate(earlier.pool)
  await earlier.pool.query(`select carillon.create_month('runs', '2034-05-01')`)

  const { rows } = await earlier.pool.query(
    `select relname from pg_class where relname ~ '^(runs|schedules)' and array_to_string(reloptions, ',') ~ 'fillfactor'`,
  )
  expect(rows).toEqual([])
})

test('the ledger can be written to while a partition is being attached', async () => {
  const scheduleId = await insertSchedule(database.pool)

  await transact(db, systemClock, async (tx) => {
    await ensurePartitions(tx, month('2035-05'))

    await insertRun(database.pool, { schedule_id: scheduleId, scheduled_for: '2026-11-16T09:00:00Z' })
  })
})

test('only months that have ended completely are dropped', async () => {
  await using other = await createDatabase()
  const otherDb = workerDbOf(other)

  expect(await dropPartitions(otherDb, { before: new Date('2026-02-28T23:59:59.999Z') })).toEqual([
    'runs_2026_01',
    'attempts_2026_01',
    'transcripts_2026_01',
  ])
  expect(await dropPartitions(otherDb, { before: new Date('2026-03-01T00:00:00Z') })).toEqual([
    'runs_2026_02',
    'attempts_2026_02',
    'transcripts_2026_02',
  ])
  expect((await listPartitions(otherDb))[0]?.name).toBe('runs_2026_03')
  await otherDb.close()
})

test('a month with an open run is kept with its attempts and transcripts, and is dropped once the run has ended', async () => {
  await using other = await createDatabase()
  const otherDb = workerDbOf(other)
  const scheduleId = await insertSchedule(other.pool)
  await other.pool.query(
    `insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, begun_at,
       due_at, waits_for, lane)
     select id, '2026-01-15Z', gen_random_uuid(), tenant_id, project_id, 1, 'schedule', 'pending', now(), now(), 'worker', lane
     from carillon.schedules where id = $1`,
    [scheduleId],
  )
  const before = new Date('2026-03-01T00:00:00Z')

  expect(await dropPartitions(otherDb, { before })).toEqual(['runs_2026_02', 'attempts_2026_02', 'transcripts_2026_02'])
  expect((await listPartitions(otherDb)).slice(0, 3).map(({ name }) => name)).toEqual([
    'runs_2026_01',
    'attempts_2026_01',
    'transcripts_2026_01',
  ])
  await other.pool.query(
    `update carillon.runs set state = 'cancelled', completed_at = now(), due_at = null, waits_for = null, lane = null`,
  )
  expect(await dropPartitions(otherDb, { before })).toEqual(['runs_2026_01', 'attempts_2026_01', 'transcripts_2026_01'])
  await otherDb.close()
})

test('a drop that waits for a reader soon gives up, so that other statements do not wait behind it for long', async () => {
  await using other = await createDatabase()
  const otherDb = workerDbOf(other)
  const reader = await other.pool.connect()
  await reader.query('begin')
  await reader.query('select count(*) from carillon.runs')

  await expect(dropPartitions(otherDb, { before: new Date('2026-02-01T00:00:00Z') })).rejects.toMatchObject({
    code: '55P03',
  })
  await reader.query('rollback')
  reader.release()
  await otherDb.close()
})

test('a drop locks the table before its partition, so it does not deadlock with a reader of both', async () => {
  await ensurePartitions(db, month('2021-05'))
  const reader = await database.pool.connect()
  await reader.query('begin; lock table only carillon.runs in access share mode')

  const dropping = dropPartitions(db, { before: new Date('2021-06-01T00:00:00Z') })
  await whenBlocked({ database })
  await reader.query(`select from carillon.runs_2021_05`)
  await reader.query('commit')
  reader.release()

  expect(await dropping).toEqual(['runs_2021_05', 'attempts_2021_05', 'transcripts_2021_05'])
})
