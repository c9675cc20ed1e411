import { randomUUID } from 'node:crypto'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Tx } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transact } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { findSettleFacts, endTurnWait, skipWaitingSlots } from '../../src/ledger/store/open-runs.ts'
import { settlementOf } from '../../src/pipeline/settlement.ts'
import { type Claim, readClaimed } from '../../src/pipeline/store/claim.ts'
import { settleSuccesses } from '../../src/pipeline/store/settle-successes.ts'
import { settleRuns, type Settlement } from '../../src/pipeline/store/settle.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { nodesOf, plansOf, recordingDb, type PlanNode } from '../query-plan.ts'
import { FENCE } from '../run-fence.ts'

let emptyLedger: TestDatabase
let fullLedger: TestDatabase
beforeAll(async () => {
  emptyLedger = await createDatabase()
  await keepThreeMonths(emptyLedger)
  fullLedger = await createDatabase()
  await keepThreeMonths(fullLedger)
  await insertHerd(fullLedger)
})
afterAll(async () => {
  await emptyLedger[Symbol.asyncDispose]()
  await fullLedger[Symbol.asyncDispose]()
})

const WORKER = randomUUID()
const RETRY = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }
const SETTLEMENTS: readonly Settlement[] = Array.from({ length: 500 }, () => {
  const run = { ...FENCE, runId: randomUUID(), scheduleId: randomUUID(), workerId: WORKER }
  return settlementOf(run, { kind: 'succeeded', result: null }, { retry: RETRY, mayFree: false })
})

const SCHEDULE_IDS = SETTLEMENTS.map(({ run }) => run.scheduleId)

function lockedOf({ run: { scheduleId } }: Settlement): Claim['schedules'][number] {
  return {
    ordinal: 1,
    id: scheduleId,
    dueAt: Date.parse('2026-03-02T09:00:00Z'),
    tenantId: 'acme',
    projectId: 'web',
    targetKind: 'test',
    revision: 1,
    spreadSlotAt: null,
    excludedSlots: null,
    autoPauseThreshold: 10,
    consecutiveFailures: 0,
    runCount: 0,
    ownerSubject: 'user:alice',
    grantId: scheduleId,
  }
}

const SETTLE_SUCCESSES = (tx: Tx): Promise<unknown> =>
  settleSuccesses(tx, { settlements: SETTLEMENTS, workerId: WORKER, now: null })

/**
 * Postgres has no statistics of an empty ledger, and a connection keeps a plan that was made for one. Such a plan must still be
 * right for a thousand rows.
 */
const STATEMENTS: readonly (readonly [string, (tx: Tx) => Promise<unknown>])[] = [
  ['settling successes', SETTLE_SUCCESSES],
  [
    'settling other outcomes',
    (tx) => settleRuns(tx, { settlements: SETTLEMENTS, autoPauseReason: 'auto', onConflict: 'refuse', now: null }),
  ],
  ['reading claimed schedules', (tx) => readClaimed(tx, { schedules: SETTLEMENTS.map(lockedOf) })],
  ['reading open runs before a run waits', (tx) => findSettleFacts(tx, { scheduleIds: SCHEDULE_IDS, now: null })],
  ['freeing runs that wait for their turn', (tx) => endTurnWait(tx, { scheduleIds: SCHEDULE_IDS, now: null })],
  ['skipping the waiting slots of a pause', (tx) => skipWaitingSlots(tx, { scheduleIds: SCHEDULE_IDS, now: null })],
]

/** The inner side of a nested loop that reads all of it for each outer row, instead of looking up a key. */
function unindexedInnerSides({ 'Node Type': type, Plans = [] }: PlanNode): string[] {
  if (type !== 'Nested Loop') return []
  const inner = Plans.find((plan) => plan['Parent Relationship'] === 'Inner')?.['Node Type'] ?? 'nothing'
  return ['Index Scan', 'Index Only Scan'].includes(inner) ? [] : [inner]
}

/** Keeps only the current month and the next two, all empty, as in a new installation. */
async function keepThreeMonths({ pool }: TestDatabase): Promise<void> {
  const { rows } = await pool.query<{ month: string }>(
    `select inhrelid::regclass::text as month from pg_inherits
     where inhparent = 'carillon.runs'::regclass and inhrelid::regclass::text !~ '_2026_0[345]$'`,
  )
  await pool.query(rows.map(({ month }) => `drop table ${month};`).join(''))
}

/** Inserts a herd of which most runs have ended, and updates the statistics. */
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

/** The generic plan of the first statement on runs, which holds for any parameters. */
async function planOf({ url }: TestDatabase, run: (tx: Tx) => Promise<unknown>): Promise<PlanNode[]> {
  const pool = createPool({ connectionString: url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await transact(db, systemClock, run)
  const statement = queries.find(({ text }) => /\bruns\b/.test(text))
  if (statement === undefined) throw new Error('expected a statement on runs, got none')
  const [, generic] = await plansOf(db, statement)
  await pool.end()
  if (generic === undefined) throw new Error('expected a generic plan, got none')
  return nodesOf(generic)
}

describe.each([
  ['an empty ledger', () => emptyLedger],
  ['a full ledger and up-to-date statistics', () => fullLedger],
])('the cost of a batch grows with its size only, with %s', (_ledger, database) => {
  test.each(STATEMENTS)('%s', async (_name, run) => {
    const nodes = await planOf(database(), run)

    expect(nodes.flatMap(unindexedInnerSides)).toEqual([])
    const lookups = nodes.filter((node) => node['Index Name']?.startsWith('runs_') === true)
    expect(lookups).not.toEqual([])
    for (const lookup of lookups) {
      // The partial index of open runs. The primary key would contain ended runs too.
      expect(lookup['Index Name']).toMatch(/_schedule_id_scheduled_for_worker_id_idx$/)
      expect(lookup['Index Cond']).toMatch(/schedule_id = (ANY \(\$\d+\)|runs(_\d+)?\.schedule_id)/)
    }
  })

  test('settling successes joins no table, so wrong statistics cannot mislead Postgres', async () => {
    const nodes = await planOf(database(), SETTLE_SUCCESSES)

    expect(nodes.map((node) => node['Node Type']).filter((type) => /Join|Nested Loop/.test(type))).toEqual([])
    const months = nodes.filter((node) => node['Relation Name']?.startsWith('runs_2026') === true)
    expect(months).toHaveLength(3)
    for (const { Filter } of months) expect(Filter).toMatch(/hashed SubPlan/)
  })
})
