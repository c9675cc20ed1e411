import { randomUUID } from 'node:crypto'

import { afterAll, beforeAll, expect, test } from 'vitest'

import type { LockedSchedule } from '../src/store/agenda.ts'
import { readClaimed } from '../src/store/claimed-schedules.ts'
import type { Tx } from '../src/store/database.ts'
import { createPool } from '../src/store/pool.ts'
import { settleSuccesses } from '../src/store/settle-successes.ts'
import { settleRuns, type Settlement } from '../src/store/settle.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { nodesOf, plansOf, recordingDb, type PlanNode } from './query-plan.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase()
  await leaveThreeMonths(database)
})
afterAll(() => database[Symbol.asyncDispose]())

const WORKER = randomUUID()
const SETTLEMENTS: readonly Settlement[] = Array.from({ length: 500 }, () => ({
  scheduleId: randomUUID(),
  scheduledFor: Date.parse('2026-03-02T09:00:00Z'),
  workerId: WORKER,
  token: 1,
  state: 'succeeded',
  outcome: 'succeeded',
  reason: null,
  retryInMs: null,
  error: null,
  result: null,
}))

function lockedOf({ scheduleId }: Settlement): LockedSchedule {
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

/**
 * Of an empty ledger Postgres knows nothing, and a plan that it makes then is kept for as long as its connection: it must be
 * the right one for a thousand rows.
 */
const STATEMENTS: readonly (readonly [string, (tx: Tx) => Promise<unknown>])[] = [
  ['plain successes', (tx) => settleSuccesses(tx, { successes: SETTLEMENTS, workerId: WORKER, now: null })],
  [
    'what attempts came to',
    (tx) => settleRuns(tx, { settlements: SETTLEMENTS, autoPauseReason: 'auto', onConflict: 'refuse', now: null }),
  ],
  ['what begin decides by', (tx) => readClaimed(tx, { schedules: SETTLEMENTS.map(lockedOf) })],
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

test.each(STATEMENTS)('a batch takes as long as its size, also with a young ledger: %s', async (_name, run) => {
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await db.transaction().execute(run)
  const statement = queries.find(({ sql }) => sql.includes('carillon.runs'))
  if (statement === undefined) throw new Error('nothing was asked of the runs')
  const [, generic] = await plansOf(db, statement)
  if (generic === undefined) throw new Error('Postgres told no plan')

  const nodes = nodesOf(generic)
  expect(nodes.flatMap(walkedForEachRow)).toEqual([])
  const conditions = nodes.flatMap((node) =>
    node['Index Name']?.startsWith('runs_') === true ? [node['Index Cond'] ?? ''] : [],
  )
  expect(new Set(conditions.map((condition) => /schedule_id = ANY \(\$\d+\)/.test(condition)))).toEqual(new Set([true]))
  await pool.end()
})
