import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { findDeadWorkers } from '../../src/pipeline/store/workers.ts'
import { createDatabase } from '../database.ts'
import { MINUTE, Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb } from '../query-plan.ts'

const SLOTS = 10
/** Statements that every slot passes through, by a text that no other statement contains. */
const CLAIM = 'for update skip locked'
const CLAIMED = 'as claimed(id'
const BEGIN = 'run_count = schedules.run_count + 1'
const PERMISSIONS = 'as asked(tenant_id'

/** The statements of the connection of a worker that runs ten slots, with how many of their executions used which kind of plan. */
async function countPlans(mode: 'force_generic_plan' | 'auto'): Promise<readonly PlanCounts[]> {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const connectionString = pipeline.database.url
  const pool = createPool({ connectionString, role: 'carillon_worker', isPrepared: true, maxConnections: 1 })
  if (mode === 'auto') await pool.query('set plan_cache_mode = auto')
  const db = createDb(pool)
  const worker = pipeline.worker('worker', 1, { db })
  const schedule = await pipeline.create()
  for (let slot = 0; slot < SLOTS; slot += 1) {
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
  }
  const { rows } = await pool.query<PlanCounts>(
    `select statement, generic_plans::integer as generic, custom_plans::integer as custom from pg_prepared_statements`,
  )
  expect(await pipeline.ledger(schedule)).toHaveLength(SLOTS)
  await db.close()
  return rows
}

/** Postgres makes a custom plan for one execution. It makes the generic plan once and keeps it. */
interface PlanCounts {
  readonly statement: string
  readonly generic: number
  readonly custom: number
}

test('a worker’s connection plans no statement for a single execution', async () => {
  const counts = await countPlans('force_generic_plan')

  expect(counts.filter(({ custom }) => custom > 0)).toEqual([])
  expect(counts.filter(({ generic }) => generic >= SLOTS).map(nameOf)).toEqual(
    expect.arrayContaining([CLAIM, CLAIMED, BEGIN, PERMISSIONS]),
  )
})

test('without force_generic_plan, Postgres plans four statements of every slot again on each execution', async () => {
  const counts = await countPlans('auto')

  const neverKept = counts.filter(({ generic, custom }) => generic === 0 && custom >= SLOTS)
  expect(neverKept.map(nameOf).toSorted()).toEqual([CLAIM, CLAIMED, BEGIN, PERMISSIONS].toSorted())
})

function nameOf({ statement }: PlanCounts): string {
  return [CLAIM, CLAIMED, BEGIN, PERMISSIONS].find((part) => statement.includes(part)) ?? statement
}

/*
 * The Postgres of the tests is built without JIT, so no test can see a plan compiled. Postgres 15 to 17 add 10^10 to the cost of a scan
 * that `enable_seqscan = off` disables but that has no alternative. That is far above `jit_above_cost`. Postgres 18 only marks the scan.
 */
test('a statement that every rescuer runs each second has a plan that Postgres 15 to 17 would compile, so JIT is off', async () => {
  await using database = await createDatabase()
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await findDeadWorkers(db, { now: null })
  const [query] = queries
  if (query === undefined) throw new Error('expected a statement that finds dead workers, got none')

  const scans = (await plansOf(db, query)).flatMap(nodesOf).filter((node) => node['Relation Name'] === 'workers')

  expect(scans).toMatchObject([{ Disabled: true }, { Disabled: true }])
  const { rows } = await pool.query(`select setting, boot_val, source from pg_settings where name = 'jit'`)
  expect(rows).toEqual([{ setting: 'off', boot_val: 'on', source: 'client' }])
  await db.close()
})
