import { expect, test } from 'vitest'

import { CensusTaker } from '../src/services/census-taker.ts'
import { countWork } from '../src/store/census.ts'
import { createPool } from '../src/store/pool.ts'
import { whenBlocked, whileHeld } from './blocked-statement.ts'
import { emptiedPipelines } from './emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from './pipeline.ts'
import { nodesOf, plansOf, recordingDb } from './query-plan.ts'

const pipelineAt = emptiedPipelines()

test('slots that are due are counted in every lane, and no other', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, workerDb: db, scheduler } = pipeline
  const census = censusOf(pipeline)
  expect(await census.runOnce()).toMatchObject({ due: 0, schedules: [] })
  for (let tenant = 0; tenant < 30; tenant += 1) {
    await scheduler.create({ ...CALLER, tenantId: `tenant-${tenant}` }, EVERY_MINUTE)
  }
  await pipeline.create({ cadence: { kind: 'cron', expression: '0 12 * * *', timezone: 'UTC' } })

  expect(await countWork(db, { now: clock.databaseNow() })).toMatchObject({ due: 0 })
  clock.advance(MINUTE / 2)

  expect(await census.runOnce()).toMatchObject({
    due: 30,
    schedules: [{ state: 'active', targetKind: 'test', count: 31 }],
  })
})

test('however many schedules there are, what is due is found by lane, and none is read that is not', async () => {
  const { database } = await pipelineAt('2026-03-02T09:00:30Z')
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await countWork(db, { now: null })
  const asked = queries.filter(({ sql }) => sql.includes('carillon.schedules'))
  expect(asked).toHaveLength(1)

  const plans = (await Promise.all(asked.map((query) => plansOf(db, query)))).flat()
  const reads = plans.flatMap(nodesOf).filter((node) => node['Relation Name'] === 'schedules')

  expect(new Set(reads.map((node) => node['Index Name']))).toEqual(new Set(['schedules_agenda_idx']))
  // Twice for each lane: for the one behind it, and for what is due in it.
  expect(reads.map((node) => node['Index Cond'] ?? '').filter((condition) => condition.includes('due_at'))).toEqual(
    plans.map(() => expect.stringMatching(/lane = .* AND .*due_at <=/) as unknown),
  )
  await db.destroy()
})

test('a count of schedules that takes a second is made again after two hundred; what is due is counted each time', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock } = pipeline
  const census = censusOf(pipeline)
  await pipeline.create()
  let counted: Promise<unknown> | undefined
  await whileHeld(pipeline, 'lock table carillon.schedules', async () => {
    counted = census.runOnce()
    await whenBlocked(pipeline)
    clock.advance(1000)
  })
  await counted
  await pipeline.create({ name: 'another' })

  clock.advance(199_000 - 1)
  expect(await census.runOnce()).toMatchObject({ due: 2, schedules: [{ count: 1 }] })
  clock.advance(1)
  expect(await census.runOnce()).toMatchObject({ due: 2, schedules: [{ count: 2 }] })
})

function censusOf({ clock, workerDb: db, events }: Pipeline): CensusTaker {
  return new CensusTaker({ db, clock, events }, { periodMs: MINUTE })
}
