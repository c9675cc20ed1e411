import { randomUUID } from 'node:crypto'

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import {
  endWaitingRuns,
  findCancelRequests,
  findSettleFacts,
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

const ENDED = 20_000
const WAITING = 2000
const HELD = 200
const IDS = Array.from({ length: 50 }, () => randomUUID())
const LANES = lanesOf(['test']).map((lane) => ({ lane, after: undefined }))
const UNKNOWN_ID = randomUUID()

/** The index by which a statement must read each month, and the condition on that index. */
interface IndexUse {
  readonly index: RegExp
  readonly condition: RegExp
}

const OPEN_INDEX = /_schedule_id_scheduled_for_worker_id_idx$/
const WAITING_INDEX = /_lane_due_at_schedule_id_scheduled_for_idx$/
const OF_SCHEDULES: IndexUse = { index: OPEN_INDEX, condition: /schedule_id = (ANY|\$|runs)/ }
const OF_WORKERS: IndexUse = { index: OPEN_INDEX, condition: /worker_id (=|>=) / }
const BY_ID: IndexUse = { index: /_id_idx$/, condition: /^\(id = ANY/ }
const OF_LANES: IndexUse = { index: WAITING_INDEX, condition: /^\(\(lane = .*due_at <= / }

const STATEMENTS: Readonly<Record<string, readonly [(db: Db) => Promise<unknown>, ...IndexUse[]]>> = {
  'due slots and runs, for a look': [
    (db) => lookAhead(db, { slots: LANES, runs: LANES, horizonMs: 1000, now: null }),
    OF_LANES,
  ],
  'due runs, for a take': [
    (db) => takeDue(db, { lanes: LANES, perLane: 5, workerId: UNKNOWN_ID, now: null }),
    OF_LANES,
    OF_SCHEDULES,
  ],
  'the runs of dead workers': [
    (db) => findOrphanedRuns(db, { workerIds: [UNKNOWN_ID], targetKinds: ['test'], limit: 500, now: null }),
    OF_WORKERS,
  ],
  'the runs of workers without a row': [
    (db) => findOrphanedRuns(db, { workerIds: null, targetKinds: ['test'], limit: 500, now: null }),
    OF_WORKERS,
  ],
  'the dead workers that hold no run': [(db) => removeDeadWorkers(db, { ids: [UNKNOWN_ID], now: null }), OF_WORKERS],
  'the running runs of a worker': [(db) => findRunningRuns(db, { workerId: UNKNOWN_ID, limit: 500 }), OF_WORKERS],
  'the runs that a worker must cancel': [
    (db) => findCancelRequests(db, { workerId: UNKNOWN_ID }),
    { index: /_worker_id_idx$/, condition: /^\(worker_id = / },
  ],
  'the open runs of schedules': [
    (db) => transact(db, systemClock, (tx) => listOpenRuns(tx, { scheduleIds: IDS })),
    OF_SCHEDULES,
  ],
  'the open runs of schedules before a run waits': [
    (db) => transact(db, systemClock, (tx) => findSettleFacts(tx, { scheduleIds: IDS, now: null })),
    OF_SCHEDULES,
  ],
  'the runs that wait for their turn': [
    (db) => transact(db, systemClock, (tx) => endTurnWait(tx, { scheduleIds: IDS, now: null })),
    OF_SCHEDULES,
  ],
  'the open runs of a schedule whose policy is edited': [
    (db) => transact(db, systemClock, (tx) => requireLockedSettlement(tx, { scheduleId: UNKNOWN_ID })),
    OF_SCHEDULES,
  ],
  'waiting runs that end': [
    (db) => transact(db, systemClock, (tx) => endWaitingRuns(tx, { runIds: IDS, end: 'superseded', now: null })),
    BY_ID,
  ],
  'held runs that a caller cancels': [
    (db) => transact(db, systemClock, (tx) => requestCancel(tx, { runIds: IDS, actor: 'user:alice', now: null })),
    BY_ID,
  ],
}

let emptyLedger: TestDatabase
let singleMonth: TestDatabase
let analyzedLedger: TestDatabase
let fullMonth: TestDatabase
beforeAll(async () => {
  emptyLedger = await createDatabase()
  singleMonth = await createDatabase()
  await keepOneMonth(singleMonth)
  analyzedLedger = await createDatabase()
  await analyzedLedger.pool.query('analyze carillon.runs')
  fullMonth = await createDatabase()
  await fillMonth(fullMonth)
  await fullMonth.pool.query('analyze carillon.runs')
})
afterAll(async () => {
  for (const database of [emptyLedger, singleMonth, analyzedLedger, fullMonth]) await database[Symbol.asyncDispose]()
})

/*
 * A connection makes a plan once and keeps it. Whatever the statistics are at that time, and however many months are empty, the plan
 * must be right for months that are full.
 */
describe.each([
  ['an empty ledger without statistics', () => emptyLedger],
  ['an empty ledger of a single month', () => singleMonth],
  ['an empty ledger with statistics', () => analyzedLedger],
  ['one full month and statistics', () => fullMonth],
])('with %s', (_ledger, database) => {
  test.each(Object.keys(STATEMENTS))('under row-level security, index conditions alone find %s', async (name) => {
    const [statement, ...indexUses] = STATEMENTS[name] ?? []
    if (statement === undefined) throw new Error(`no statement ${name}`)
    await using worker = workerPool(database())

    const scans = (await genericPlan(worker.pool, statement)).filter(isOfMonth)

    expect(scans).not.toEqual([])
    for (const scan of scans) {
      const indexUse = indexUses.find(({ index }) => index.test(scan['Index Name'] ?? ''))
      expect(scan).toMatchObject({ 'Index Name': expect.stringMatching(indexUse?.index ?? /none/) as string })
      expect(scan['Index Cond']).toMatch(indexUse?.condition ?? /none/)
    }
    for (const { index } of indexUses) expect(scans.some((scan) => index.test(scan['Index Name'] ?? ''))).toBe(true)
  })

  test('under row-level security, the count of open runs reads only the index of open runs', async () => {
    await using worker = workerPool(database())

    const scans = (await genericPlan(worker.pool, (db) => countWork(db, { now: null }))).filter(isOfMonth)

    expect(scans.length).toBeGreaterThan(0)
    for (const scan of scans) expect(scan['Index Name']).toMatch(OPEN_INDEX)
  })
})

test('a plan that was made while a month was empty reads no ended runs once the month is full', async () => {
  await using database = await createDatabase()
  await using worker = workerPool(database)

  expect(await rowsReadOnceFull(database, worker.pool)).toBeLessThan(100)
})

test('without enable_seqscan = off, a plan that was made while a month was empty reads all of the full month', async () => {
  await using database = await createDatabase()
  await using worker = workerPool(database)
  await worker.pool.query('set enable_seqscan = on')

  expect(await rowsReadOnceFull(database, worker.pool)).toBeGreaterThan(ENDED)
})

/** How many rows a read of the open runs of fifty schedules costs, with a plan that was made while the month was empty. */
async function rowsReadOnceFull(database: TestDatabase, pool: pg.Pool): Promise<number> {
  // Postgres assumes that a table without statistics has ten pages. Now it knows that this one has none.
  await database.pool.query('analyze carillon.runs')
  const db = createDb(pool)
  const read = (): Promise<unknown> => transact(db, systemClock, (tx) => listOpenRuns(tx, { scheduleIds: IDS }))
  await read()
  await fillMonth(database)
  return countRowsRead({ db, admin: createDb(database.pool) }, read)
}

/** A connection as `Worker` makes it. */
function workerPool({ url }: TestDatabase): AsyncDisposable & { readonly pool: pg.Pool } {
  const pool = createPool({ connectionString: url, role: 'carillon_worker', isPrepared: true, maxConnections: 1 })
  return { pool, [Symbol.asyncDispose]: () => pool.end() }
}

/** The generic plan of the only statement on the ledger, which holds for any parameters. */
async function genericPlan(pool: pg.Pool, statement: (db: Db) => Promise<unknown>): Promise<PlanNode[]> {
  const { db, queries } = recordingDb(pool)
  await statement(db)
  const [query, ...others] = queries.filter(({ text }) => /\bruns\b/.test(text))
  if (query === undefined) throw new Error('expected a statement on runs, got none')
  expect(others).toEqual([])
  const [, generic] = await plansOf(db, query)
  if (generic === undefined) throw new Error('expected a generic plan, got none')
  return nodesOf(generic)
}

/** Whether a node reads a month of runs: its table, an index, or an index for a bitmap scan. */
function isOfMonth(node: PlanNode): boolean {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '' } = node
  if (type === 'Bitmap Index Scan') return index.startsWith('runs_20')
  return type.endsWith(' Scan') && type !== 'Bitmap Heap Scan' && table.startsWith('runs_20')
}

async function keepOneMonth({ pool }: TestDatabase): Promise<void> {
  const { rows } = await pool.query<{ month: string }>(
    `select inhrelid::regclass::text as month from pg_inherits
     where inhparent = 'carillon.runs'::regclass and inhrelid::regclass::text !~ '_2026_03$'`,
  )
  await pool.query(rows.map(({ month }) => `drop table ${month};`).join(''))
}

/** Inserts runs of one month: 20,000 have ended, 2,000 wait and are due, and 200 are held by a dead worker. */
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
    [ENDED, WAITING, HELD],
  )
}
