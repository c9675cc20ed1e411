import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterEach, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/months.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { DAY, Pipeline } from '../pipeline.ts'

/** The last version in which runs waited as jobs of a job engine. */
const BEFORE = 5
const WAITING_RUNS = 6

const databases: TestDatabase[] = []
afterEach(async () => {
  for (const database of databases.splice(0)) await database[Symbol.asyncDispose]()
})

/** A database of that version, with runs that wait for every reason. */
async function createBefore(): Promise<TestDatabase> {
  const database = await createDatabase({ content: 'empty' })
  databases.push(database)
  await migrate(database.pool, { to: BEFORE })
  const db = createDb(database.pool)
  await ensurePartitions(db, { from: new Date('2026-02-01T00:00:00Z'), to: new Date('2026-04-30T00:00:00Z') })
  await database.pool.query(readFileSync(join(import.meta.dirname, 'ledger-0005.sql'), 'utf8'))
  return database
}

/** The open runs as text: `queued 09:30 pending, for turn, in test`. */
async function openRuns({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `select format('%s %s %s%s%s', revisions.name, to_char(runs.scheduled_for at time zone 'UTC', 'HH24:MI'), runs.state,
       ', for ' || runs.waits_for || case
         when runs.due_at = 'infinity' then ''
         when runs.due_at < now() - interval '1 hour' then ' at ' || to_char(runs.due_at at time zone 'UTC', 'DD HH24:MI')
         else ' at once'
       end,
       ', in ' || split_part(runs.lane, '.', 1)) as line
     from carillon.runs
     join carillon.schedule_revisions as revisions
       on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
     where runs.completed_at is null
     order by line`,
  )
  return rows.map(({ line }) => line)
}

test('each run that waited as a job waits in the ledger, for the same reason and in the lane of its own target kind (I1)', async () => {
  const database = await createBefore()

  await migrate(database.pool, { to: WAITING_RUNS })

  expect(await openRuns(database)).toEqual([
    'allowed since 09:20 running',
    'allowed since 09:30 pending, for worker at once, in test',
    'given up by a pause 09:20 running',
    'handed back 09:10 pending, for worker at once, in test',
    'lost 09:00 retrying, for worker at 02 09:06, in test',
    'overlapping 09:20 running',
    'queued 09:20 running',
    'queued 09:30 pending, for turn, in test',
    'queued behind a lost one 09:00 retrying, for worker at 02 09:06, in test',
    'queued behind a lost one 09:05 pending, for turn, in test',
    'replacing 09:20 running',
    'replacing 09:30 pending, for turn, in test',
    'retry 09:05 retrying, for retry at 03 09:05, in test',
    'retry of another kind 09:05 retrying, for retry at 03 09:05, in test',
    'run now 09:35 pending, for worker at once, in test',
    'running 09:20 running',
    'two behind a running one 09:20 running',
    'two behind a running one 09:31 pending, for turn, in test',
    'two pending 09:32 pending, for worker at once, in test',
    'two pending 09:33 pending, for turn, in test',
  ])
  const { rows } = await database.pool.query(`select to_regnamespace('carillon_jobs') as engine`)
  expect(rows).toEqual([{ engine: null }])
})

test('runs that were never tried are subtracted from run_count, and ended runs do not change', async () => {
  const database = await createBefore()
  const endedRuns = `select id, state, reason, attempt_count, begun_at, completed_at from carillon.runs
    where completed_at is not null and completed_at < '2026-04-01' order by id`
  const { rows: before } = await database.pool.query(endedRuns)

  await migrate(database.pool, { to: WAITING_RUNS })

  expect((await database.pool.query(endedRuns)).rows).toEqual(before)
  const { rows } = await database.pool.query<{ name: string; runs: number }>(
    `select distinct revisions.name, schedules.run_count::int as runs
     from carillon.schedules
     join carillon.schedule_revisions as revisions on revisions.schedule_id = schedules.id
     where revisions.name in ('given up by a pause', 'two behind a running one')
     order by name`,
  )
  expect(rows).toEqual([
    { name: 'given up by a pause', runs: 1 },
    { name: 'two behind a running one', runs: 2 },
  ])
  const { rows: wrong } = await database.pool.query(
    `select schedules.id from carillon.schedules
     where run_count <> (
       select count(*) from carillon.runs
       where runs.schedule_id = schedules.id and (runs.attempt_count > 0 or runs.completed_at is null)
     )`,
  )
  expect(wrong).toEqual([])
})

test('every waiting run is tried and ends', async () => {
  const database = await createBefore()
  await migrate(database.pool)
  // The migration set these instants by the real time. The rest of the test uses its own clock.
  await database.pool
    .query(`update carillon.runs set due_at = '2026-03-02T09:40Z' where due_at between '2026-04-01' and 'infinity'
    and due_at <> 'infinity'`)
  const open = (await openRuns(database)).length
  const pipeline = await Pipeline.at('2026-03-02T09:41:00Z', database)
  const worker = pipeline.worker()

  for (let day = 0; day < 2; day += 1) {
    await worker.heartbeat.runOnce()
    await worker.rescuer.runOnce()
    await worker.runDue()
    pipeline.clock.advance(DAY)
  }

  const { rows } = await database.pool.query<{ state: string; runs: number }>(
    `select state, count(*)::int as runs from carillon.runs
     where scheduled_for <= '2026-03-02T09:40Z' and (completed_at is null or completed_at between '2026-03-02T09:41Z' and '2026-04-01')
     group by state order by state`,
  )
  expect(open).toBe(20)
  expect(rows).toEqual([
    { state: 'succeeded', runs: 19 },
    { state: 'cancelled', runs: 1 },
  ])
  await pipeline.workerDb.close()
})

test('the migration refuses to run while a worker of the earlier version holds a lease', async () => {
  const database = await createBefore()
  await database.pool.query(`update carillon.workers set lease_expires_at = now() + interval '1 hour'`)

  const refused = migrate(database.pool, { to: WAITING_RUNS, leasePauseSeconds: 0 })

  await expect(refused).rejects.toMatchObject({
    code: 'workers_alive',
    message: expect.stringMatching(/got .+: stop the workers first/) as string,
  })
  const { rows } = await database.pool.query(`select max(number) as latest from carillon.migrations`)
  expect(rows).toEqual([{ latest: BEFORE }])
})

test('migrating down refuses to run while a worker of this version holds a lease', async () => {
  const database = await createBefore()
  await migrate(database.pool, { to: WAITING_RUNS })
  await database.pool.query(`update carillon.workers set lease_expires_at = now() + interval '1 hour'`)

  await expect(migrateDown(database.pool, { to: BEFORE })).rejects.toThrow(/got .+: stop the workers first/)

  const { rows } = await database.pool.query(`select max(number) as latest from carillon.migrations`)
  expect(rows).toEqual([{ latest: WAITING_RUNS }])
})

test('migrating down keeps all open runs, and waiting runs wait as in the earlier version', async () => {
  const database = await createBefore()
  await migrate(database.pool, { to: WAITING_RUNS })

  await migrateDown(database.pool, { to: BEFORE })

  const { rows } = await database.pool.query<{ state: string; runs: number; has_retry_at: boolean }>(
    `select state, count(*)::int as runs, bool_and(retry_at is not null) as has_retry_at from carillon.runs
     where completed_at is null group by state order by state`,
  )
  expect(rows).toEqual([
    { state: 'pending', runs: 9, has_retry_at: false },
    { state: 'running', runs: 7, has_retry_at: false },
    { state: 'retrying', runs: 4, has_retry_at: true },
  ])
})
