import { randomUUID } from 'node:crypto'

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import {
  endWaitingRuns,
  findCancelRequests,
  findWaitFacts,
  endTurnWait,
  requestCancel,
  requireLockedSettlement,
} from '../../src/ledger/store/open-runs.ts'
import { listOpenRuns } from '../../src/ledger/store/runs.ts'
import { countWork } from '../../src/maintenance/store/gauges.ts'
import { findRunningRuns } from '../../src/pipeline/store/in-doubt-runs.ts'
import { lookAhead } from '../../src/pipeline/store/look.ts'
import { takeDue } from '../../src/pipeline/store/take.ts'
import { findOrphanedRuns, removeDeadWorkers } from '../../src/pipeline/store/workers.ts'
import { lanesOf } from '../../src/policy/lane-names.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { nodesOf, plansOf, recordingDb, type PlanNode } from '../query-plan.ts'
import { countRowsRead } from '../rows-read.ts'

const OVER = 20_000
const WAITING = 2000
const HELD = 200
const IDS = Array.from({ length: 50 }, () => randomUUID())
const LANES = lanesOf(['test']).map((lane) => ({ lane, after: undefined }))
const NOBODY = randomUUID()

/** By which index each month is read, and by which condition on it. */
interface Reading {
  readonly index: RegExp
  readonly condition: RegExp
}

const OPEN_INDEX = /_schedule_id_scheduled_for_worker_id_idx$/
const WAITING_INDEX = /_lane_due_at_schedule_id_scheduled_for_idx$/
const OF_SCHEDULES: Reading = { index: OPEN_INDEX, condition: /schedule_id = (ANY|\$|runs)/ }
const OF_WORKERS: Reading = { index: OPEN_INDEX, condition: /worker_id (=|>=) / }
const BY_ID: Reading = { index: /_id_idx$/, condition: /^\(id = ANY/ }
const OF_LANES: Reading = { index: WAITING_INDEX, condition: /^\(\(lane = .*due_at <= / }

const STATEMENTS: Readonly<Record<string, readonly [(db: Db) => Promise<unknown>, ...Reading[]]>> = {
  'what is due, for a look': [
    (db) => lookAhead(db, { slots: LANES, runs: LANES, horizonMs: 1000, now: null }),
    OF_LANES,
  ],
  'what is due, for a take': [
    (db) => takeDue(db, { lanes: LANES, perLane: 5, workerId: NOBODY, now: null }),
    OF_LANES,
    OF_SCHEDULES,
  ],
  'the runs of dead workers': [
    (db) => findOrphanedRuns(db, { workerIds: [NOBODY], limit: 500, now: null }),
    OF_WORKERS,
  ],
  'the runs of whoever is not on the list': [
    (db) => findOrphanedRuns(db, { workerIds: null, limit: 500, now: null }),
    OF_WORKERS,
  ],
  'the dead workers that hold nothing': [(db) => removeDeadWorkers(db, { ids: [NOBODY], now: null }), OF_WORKERS],
  'what runs in the name of a worker': [(db) => findRunningRuns(db, { workerId: NOBODY, limit: 500 }), OF_WORKERS],
  'what a worker is to cancel': [
    (db) => findCancelRequests(db, { workerId: NOBODY }),
    { index: /_worker_id_idx$/, condition: /^\(worker_id = / },
  ],
  'the open runs of schedules': [
    (db) => inTransaction(db, (tx) => listOpenRuns(tx, { scheduleIds: IDS })),
    OF_SCHEDULES,
  ],
  'what is known of runs before they wait': [
    (db) => inTransaction(db, (tx) => findWaitFacts(tx, { scheduleIds: IDS })),
    OF_SCHEDULES,
  ],
  'the runs whose turn has come': [
    (db) => inTransaction(db, (tx) => endTurnWait(tx, { scheduleIds: IDS, now: null })),
    OF_SCHEDULES,
  ],
  'the open runs of a schedule whose policy is edited': [
    (db) => inTransaction(db, (tx) => requireLockedSettlement(tx, { scheduleId: NOBODY })),
    OF_SCHEDULES,
  ],
  'the waiting runs that end': [
    (db) => inTransaction(db, (tx) => endWaitingRuns(tx, { runIds: IDS, end: 'superseded', now: null })),
    BY_ID,
  ],
  'the held runs that are to be cancelled': [
    (db) => inTransaction(db, (tx) => requestCancel(tx, { runIds: IDS, actor: 'user:alice', now: null })),
    BY_ID,
  ],
}

let young: TestDatabase
let youngest: TestDatabase
let counted: TestDatabase
let grown: TestDatabase
beforeAll(async () => {
  young = await createDatabase()
  youngest = await createDatabase()
  await leaveOneMonth(youngest)
  counted = await createDatabase()
  await counted.pool.query('analyze carillon.runs')
  grown = await createDatabase()
  await fillMonth(grown)
  await grown.pool.query('analyze carillon.runs')
})
afterAll(async () => {
  for (const database of [young, youngest, counted, grown]) await database[Symbol.asyncDispose]()
})

/*
 * A plan is made once per connection, and kept. Of a young ledger all months are empty, of a grown one all but a single month:
 * whatever Postgres knows by then, it must be the right plan for months that are full.
 */
describe.each([
  ['a young ledger', () => young],
  ['a young ledger of a single month', () => youngest],
  ['a ledger that Postgres knows to be empty', () => counted],
  ['a ledger that Postgres knows', () => grown],
])('with %s', (_ledger, database) => {
  test.each(Object.keys(STATEMENTS))('behind row-level security, index conditions alone find %s', async (name) => {
    const [statement, ...readings] = STATEMENTS[name] ?? []
    if (statement === undefined) throw new Error(`no statement ${name}`)
    await using worker = workerPool(database())

    const scans = (await genericPlan(worker.pool, statement)).filter(isOfMonth)

    expect(scans).not.toEqual([])
    for (const scan of scans) {
      const reading = readings.find(({ index }) => index.test(scan['Index Name'] ?? ''))
      expect(scan).toMatchObject({ 'Index Name': expect.stringMatching(reading?.index ?? /none/) as string })
      expect(scan['Index Cond']).toMatch(reading?.condition ?? /none/)
    }
    for (const { index } of readings) expect(scans.some((scan) => index.test(scan['Index Name'] ?? ''))).toBe(true)
  })

  test('who counts open runs reads no other index than theirs, behind row-level security', async () => {
    await using worker = workerPool(database())

    const scans = (await genericPlan(worker.pool, (db) => countWork(db, { now: null }))).filter(isOfMonth)

    expect(scans.length).toBeGreaterThan(0)
    for (const scan of scans) expect(scan['Index Name']).toMatch(OPEN_INDEX)
  })
})

test('a plan that was made while a month was empty reads none of its rows that are over, once it is full', async () => {
  await using database = await createDatabase()
  await using worker = workerPool(database)

  expect(await rowsReadOnceFull(database, worker.pool)).toBeLessThan(100)
})

test('without enable_seqscan = off, a plan that was made while a month was empty reads all of it once it is full', async () => {
  await using database = await createDatabase()
  await using worker = workerPool(database)
  await worker.pool.query('set enable_seqscan = on')

  expect(await rowsReadOnceFull(database, worker.pool)).toBeGreaterThan(OVER)
})

/** How many rows the open runs of fifty schedules cost on a connection that knows the statement since the month was empty. */
async function rowsReadOnceFull(database: TestDatabase, pool: pg.Pool): Promise<number> {
  // Of a table that was never counted Postgres expects ten pages. Now it knows that there is none.
  await database.pool.query('analyze carillon.runs')
  const db = createDb(pool)
  const read = (): Promise<unknown> => inTransaction(db, (tx) => listOpenRuns(tx, { scheduleIds: IDS }))
  await read()
  await fillMonth(database)
  return countRowsRead({ db, everybody: createDb(database.pool) }, read)
}

/** The connection of a worker, as `Worker` makes it. */
function workerPool({ url }: TestDatabase): AsyncDisposable & { readonly pool: pg.Pool } {
  const pool = createPool({ connectionString: url, role: 'carillon_worker', isPrepared: true, maxConnections: 1 })
  return { pool, [Symbol.asyncDispose]: () => pool.end() }
}

async function inTransaction<Result>(
  db: Db,
  work: Parameters<ReturnType<Db['transaction']>['execute']>[0],
): Promise<Result> {
  return (await db.transaction().execute(work)) as Result
}

/** How Postgres goes about what a statement asks of the ledger, whatever the parameters are. */
async function genericPlan(pool: pg.Pool, statement: (db: Db) => Promise<unknown>): Promise<PlanNode[]> {
  const { db, queries } = recordingDb(pool)
  await statement(db)
  const [query, ...others] = queries.filter(({ sql }) => sql.includes('carillon.runs'))
  if (query === undefined) throw new Error('nothing was asked of the runs')
  expect(others).toEqual([])
  const [, generic] = await plansOf(db, query)
  if (generic === undefined) throw new Error('Postgres told no plan')
  return nodesOf(generic)
}

/** Whether it reads a month of runs: from the table, from an index, or from an index for a bitmap of the table. */
function isOfMonth(node: PlanNode): boolean {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '' } = node
  if (type === 'Bitmap Index Scan') return index.startsWith('runs_20')
  return type.endsWith(' Scan') && type !== 'Bitmap Heap Scan' && table.startsWith('runs_20')
}

async function leaveOneMonth({ pool }: TestDatabase): Promise<void> {
  const { rows } = await pool.query<{ month: string }>(
    `select inhrelid::regclass::text as month from pg_inherits
     where inhparent = 'carillon.runs'::regclass and inhrelid::regclass::text !~ '_2026_03$'`,
  )
  await pool.query(rows.map(({ month }) => `drop table ${month};`).join(''))
}

/** A month of which most is over. Two thousand runs wait, due by now, and two hundred are held by a worker that is not alive. */
async function fillMonth({ pool }: TestDatabase): Promise<void> {
  await pool.query(
    `insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state,
       worker_id, attempt_count, token, begun_at, started_at, completed_at, waits_for, due_at, lane)
     select gen_random_uuid(), at, gen_random_uuid(), 'acme', 'web', 1, 'schedule', state::carillon.run_state,
       case state when 'running' then gen_random_uuid() end, 1, 1, at, at, case state when 'succeeded' then at end,
       case state when 'retrying' then 'retry'::carillon.run_wait end, case state when 'retrying' then at end,
       case state when 'retrying' then 'test.' || n % 64 end
     from generate_series(1, $1::integer + $2::integer + $3::integer) as n,
       lateral (select '2026-03-02T09:00:00Z'::timestamptz as at,
         case when n <= $1::integer then 'succeeded' when n <= $1::integer + $2::integer then 'retrying' else 'running' end as state) as run`,
    [OVER, WAITING, HELD],
  )
}
