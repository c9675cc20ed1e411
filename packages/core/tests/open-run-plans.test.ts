import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { countWork } from '../src/store/census.ts'
import type { Db } from '../src/store/database.ts'
import { createPool } from '../src/store/pool.ts'
import { findRunningRuns } from '../src/store/stray-runs.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { nodesOf, plansOf, recordingDb } from './query-plan.ts'

const OLD_RUNS = 20_000

test('who looks for open runs reads none of those that are over, also behind row-level security', async () => {
  await using database = await createDatabase()
  await insertOldRuns(database)
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
  const statements: ((db: Db) => Promise<unknown>)[] = [
    (db) => findRunningRuns(db, { workerId: randomUUID() }),
    (db) => countWork(db, { now: null }),
  ]

  for (const statement of statements) {
    const { db, queries } = recordingDb(pool)
    await statement(db)
    const asked = queries.filter(({ sql }) => sql.includes('carillon.runs'))
    expect(asked).toHaveLength(1)
    for (const query of asked) {
      const [, generic] = await plansOf(db, query)
      const whole =
        generic === undefined ? [] : nodesOf(generic).filter((node) => node['Relation Name'] === 'runs_2026_03')
      expect(whole.map((node) => node['Node Type'])).toEqual(['Bitmap Heap Scan'])
    }
  }
  await pool.end()
})

async function insertOldRuns({ pool }: TestDatabase): Promise<void> {
  await pool.query(
    `insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state,
       attempt_count, token, begun_at, started_at, completed_at)
     select gen_random_uuid(), '2026-03-02T09:00:00Z', gen_random_uuid(), 'acme', 'web', 1, 'schedule', 'succeeded', 1, 1,
       '2026-03-02T09:00:00Z', '2026-03-02T09:00:00Z', '2026-03-02T09:00:00Z'
     from generate_series(1, $1)`,
    [OLD_RUNS],
  )
  await pool.query('vacuum (analyze) carillon.runs_2026_03')
}
