import { randomUUID } from 'node:crypto'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { findWaitFacts, endTurnWait, skipWaitingSlots } from '../../src/ledger/store/open-runs.ts'
import { type Claim, readClaimed } from '../../src/pipeline/store/claim.ts'
import { settleSuccesses } from '../../src/pipeline/store/settle-successes.ts'
import { settleRuns, type Settlement } from '../../src/pipeline/store/settle.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { nodesOf, plansOf, recordingDb, type PlanNode } from '../query-plan.ts'

let young: TestDatabase
let grown: TestDatabase
beforeAll(async () => {
  young = await createDatabase()
  await leaveThreeMonths(young)
  grown = await createDatabase()
  await leaveThreeMonths(grown)
  await insertHerd(grown)
})
afterAll(async () => {
  await young[Symbol.asyncDispose]()
  await grown[Symbol.asyncDispose]()
})

const WORKER = randomUUID()
const SETTLEMENTS: readonly Settlement[] = Array.from({ length: 500 }, () => ({
  runId: randomUUID(),
  scheduleId: randomUUID(),
  scheduledFor: Date.parse('2026-03-02T09:00:00Z'),
  workerId: WORKER,
  token: 1,
  targetKind: 'test',
  state: 'succeeded',
  outcome: 'succeeded',
  reason: null,
  waitsFor: null,
  dueInMs: null,
  error: null,
  result: null,
  mayFree: false,
}))

const SCHEDULE_IDS = SETTLEMENTS.map(({ scheduleId }) => scheduleId)

function lockedOf({ scheduleId }: Settlement): Claim['schedules'][number] {
  return {
    id: scheduleId,
    tenantId: 'acme',
    projectId: 'web',
    targetKind: 'test',
    revision: 1,
    nextSlotAt: Date.parse('2026-03-02T09:00:00Z'),
    excludedSlots: [],
    autoPauseThreshold: 10,
    consecutiveFailures: 0,
    ownerSubject: 'user:alice',
    grantId: scheduleId,
  }
}

const SETTLE_SUCCESSES = (tx: Tx): Promise<unknown> =>
  settleSuccesses(tx, { settlements: SETTLEMENTS, workerId: WORKER, now: null })

/**
 * Of an empty ledger Postgres knows nothing, and a plan that it makes then is kept for as long as its connection: it must be
 * the right one for a thousand rows.
 */
const STATEMENTS: readonly (readonly [string, (tx: Tx) => Promise<unknown>])[] = [
  ['plain successes', SETTLE_SUCCESSES],
  [
    'what attempts came to',
    (tx) => settleRuns(tx, { settlements: SETTLEMENTS, autoPauseReason: 'auto', onConflict: 'refuse', now: null }),
  ],
  ['what begin decides by', (tx) => readClaimed(tx, { schedules: SETTLEMENTS.map(lockedOf) })],
  ['what is known of runs before they wait', (tx) => findWaitFacts(tx, { scheduleIds: SCHEDULE_IDS })],
  ['the runs whose turn has come', (tx) => endTurnWait(tx, { scheduleIds: SCHEDULE_IDS, now: null })],
  ['the runs that a pause gives up', (tx) => skipWaitingSlots(tx, { scheduleIds: SCHEDULE_IDS, now: null })],
]

/** What a loop goes through for each row, where it looks up nothing by a key: all of the other side. */
function walkedForEachRow({ 'Node Type': type, Plans = [] }: PlanNode): string[] {
  if (type !== 'Nested Loop') return []
  const inner = Plans.find((plan) => plan['Parent Relationship'] === 'Inner')?.['Node Type'] ?? 'nothing'
  return ['Index Scan', 'Index Only Scan'].includes(inner) ? [] : [inner]
}

/** As an installation is when it begins: the month and the next two, and nothing in them. */
async function leaveThreeMonths({ pool }: TestDatabase): Promise<void> {
  const { rows } = await pool.query<{ month: string }>(
    `select inhrelid::regclass::text as month from pg_inherits
     where inhparent = 'carillon.runs'::regclass and inhrelid::regclass::text !~ '_2026_0[345]$'`,
  )
  await pool.query(rows.map(({ month }) => `drop table ${month};`).join(''))
}

/** In the midst of a herd: most of its runs are over, and Postgres has counted them. */
async function insertHerd({ pool }: TestDatabase): Promise<void> {
  await pool.query(
    `insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, worker_id,
       attempt_count, token, begun_at, started_at, completed_at)
     select gen_random_uuid(), at, gen_random_uuid(), 'acme', 'web', 1, 'schedule', state::carillon.run_state,
       case state when 'running' then $1::uuid end, 1, 1, at, at, case state when 'succeeded' then at end
     from generate_series(1, 20000) as n,
       lateral (select '2026-03-02T09:00:00Z'::timestamptz as at,
         case when n > 18000 then 'running' else 'succeeded' end as state) as run`,
    [WORKER],
  )
  await pool.query('analyze carillon.runs')
}

/** How Postgres goes about what is asked of the runs, whatever the parameters are. */
async function planOf({ url }: TestDatabase, run: (tx: Tx) => Promise<unknown>): Promise<PlanNode[]> {
  const pool = createPool({ connectionString: url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await db.transaction().execute(run)
  const statement = queries.find(({ sql }) => sql.includes('carillon.runs'))
  if (statement === undefined) throw new Error('nothing was asked of the runs')
  const [, generic] = await plansOf(db, statement)
  await pool.end()
  if (generic === undefined) throw new Error('Postgres told no plan')
  return nodesOf(generic)
}

describe.each([
  ['a young ledger', () => young],
  ['a ledger that Postgres knows', () => grown],
])('a batch takes as long as its size, with %s', (_ledger, database) => {
  test.each(STATEMENTS)('%s', async (_name, run) => {
    const nodes = await planOf(database(), run)

    expect(nodes.flatMap(walkedForEachRow)).toEqual([])
    const lookups = nodes.filter((node) => node['Index Name']?.startsWith('runs_') === true)
    expect(lookups).not.toEqual([])
    for (const lookup of lookups) {
      // The one of open runs alone: the key holds all that ever was.
      expect(lookup['Index Name']).toMatch(/_schedule_id_scheduled_for_worker_id_idx$/)
      expect(lookup['Index Cond']).toMatch(/schedule_id = (ANY \(\$\d+\)|runs(_\d+)?\.schedule_id)/)
    }
  })

  test('plain successes are joined with nothing, so that no count can mislead Postgres', async () => {
    const nodes = await planOf(database(), SETTLE_SUCCESSES)

    expect(nodes.map((node) => node['Node Type']).filter((type) => /Join|Nested Loop/.test(type))).toEqual([])
    const months = nodes.filter((node) => node['Relation Name']?.startsWith('runs_2026') === true)
    expect(months).toHaveLength(3)
    for (const { Filter } of months) expect(Filter).toMatch(/hashed SubPlan/)
  })
})
