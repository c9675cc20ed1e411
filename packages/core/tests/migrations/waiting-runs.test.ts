import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterEach, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/months.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { DAY, Pipeline } from '../pipeline.ts'

/** The version whose runs waited as jobs of an engine. */
const BEFORE = 5
const WAITING_RUNS = 6

const databases: TestDatabase[] = []
afterEach(async () => {
  for (const database of databases.splice(0)) await database[Symbol.asyncDispose]()
})

/** A database of the version before, with a ledger in which runs wait for everything that a run could wait for. */
async function createBefore(): Promise<TestDatabase> {
  const database = await createDatabase({ content: 'empty' })
  databases.push(database)
  await migrate(database.pool, { to: BEFORE })
  const db = createDb(database.pool)
  await ensurePartitions(db, { from: new Date('2026-02-01T00:00:00Z'), to: new Date('2026-04-30T00:00:00Z') })
  await database.pool.query(readFileSync(join(import.meta.dirname, 'ledger-0005.sql'), 'utf8'))
  return database
}

/** The runs that are not over, as one reads them: `queued 09:30 pending, for its turn, in test`. */
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

test('each run that waited for a job waits in the ledger, for the same and in the lane of its own kind (I1)', async () => {
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

test('what never ran comes off the counts of its schedule, and what is over is left as it was', async () => {
  const database = await createBefore()
  const over = `select id, state, reason, attempt_count, begun_at, completed_at from carillon.runs
    where completed_at is not null and completed_at < '2026-04-01' order by id`
  const { rows: before } = await database.pool.query(over)

  await migrate(database.pool, { to: WAITING_RUNS })

  expect((await database.pool.query(over)).rows).toEqual(before)
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

test('every run that waited is tried, and comes to its end', async () => {
  const database = await createBefore()
  await migrate(database.pool)
  // What is due now is due by the wall; the rest of this test goes by its own clock.
  await database.pool
    .query(`update carillon.runs set due_at = '2026-03-02T09:40Z' where due_at between '2026-04-01' and 'infinity'
    and due_at <> 'infinity'`)
  const open = (await openRuns(database)).length
  const pipeline = await Pipeline.at('2026-03-02T09:41:00Z', database)
  const worker = pipeline.worker()

  for (let day = 0; day < 2; day += 1) {
    await worker.heartbeat.runOnce()
    await worker.rescuer.runOnce()
    await worker.keep()
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
  await pipeline.workerDb.destroy()
})

test('the migration refuses to run while a worker of the version before holds a lease, and names it', async () => {
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

test('migrated down, waiting runs wait as the version before knows it, and nothing is lost', async () => {
  const database = await createBefore()
  await migrate(database.pool, { to: WAITING_RUNS })

  await migrateDown(database.pool, { to: BEFORE })

  const { rows } = await database.pool.query<{ state: string; runs: number; says_when: boolean }>(
    `select state, count(*)::int as runs, bool_and(retry_at is not null) as says_when from carillon.runs
     where completed_at is null group by state order by state`,
  )
  expect(rows).toEqual([
    { state: 'pending', runs: 9, says_when: false },
    { state: 'running', runs: 7, says_when: false },
    { state: 'retrying', runs: 4, says_when: true },
  ])
})
