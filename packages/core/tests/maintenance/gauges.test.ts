import { expect, test } from 'vitest'

import { createPool } from '../../src/db/pool.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { GaugeCollector } from '../../src/maintenance/gauge-collector.ts'
import { countWork } from '../../src/maintenance/store/gauges.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from '../pipeline.ts'
import { nodesOf, plansOf, recordingDb } from '../query-plan.ts'

const pipelineAt = emptiedPipelines()
const SECOND = 1000

test('due slots are counted over all lanes, and slots that are not due are not counted', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, workerDb: db, scheduler } = pipeline
  const collector = collectorOf(pipeline)
  expect(await collector.runOnce()).toMatchObject({ due: 0, schedules: [] })
  for (let tenant = 0; tenant < 30; tenant += 1) {
    await scheduler.create({ ...CALLER, tenantId: `tenant-${tenant}` }, EVERY_MINUTE)
  }
  await pipeline.create({ cadence: { kind: 'cron', expression: '0 12 * * *', timezone: 'UTC' } })

  expect(await countWork(db, { now: clock.databaseNow() })).toMatchObject({ due: 0 })
  clock.advance(MINUTE / 2)

  expect(await collector.runOnce()).toMatchObject({
    due: 30,
    schedules: [{ state: 'active', targetKind: 'test', count: 31 }],
  })
})

test('due slots are counted by an index on lane and instant, so no schedule that is not due is read', async () => {
  const { database } = await pipelineAt('2026-03-02T09:00:30Z')
  const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
  const { db, queries } = recordingDb(pool)
  await countWork(db, { now: null })
  const asked = queries.filter(({ text }) => text.includes('from schedules'))
  expect(asked).toHaveLength(1)

  const plans = (await Promise.all(asked.map((query) => plansOf(db, query)))).flat()
  const reads = plans.flatMap(nodesOf).filter((node) => node['Relation Name'] === 'schedules')

  expect(new Set(reads.map((node) => node['Index Name']))).toEqual(new Set(['schedules_agenda_idx']))
  const ofDue = reads.map((node) => node['Index Cond'] ?? '').filter((condition) => condition.includes('due_at'))
  expect(ofDue).toHaveLength(plans.length)
  for (const condition of ofDue) expect(condition).toMatch(/lane = .* AND .*due_at <=/)
  await db.close()
})

test('a count of schedules that takes a second is repeated after 200 s, and due slots are counted every time', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { collector, clock } = slowCollectorOf(pipeline)
  await pipeline.create()
  await collector.runOnce()
  const countedFromMs = clock.elapsedMs - SECOND
  await pipeline.create({ name: 'another' })
  pipeline.clock.advance(MINUTE)

  clock.elapsedMs = countedFromMs + 200 * SECOND - SECOND - 1
  expect(await collector.runOnce()).toMatchObject({ due: 2, schedules: [{ count: 1 }] })
  expect(await collector.runOnce()).toMatchObject({ due: 2, schedules: [{ count: 2 }] })
})

test('a failed count of schedules does not affect the other counts, and is repeated after 200 s like a successful one', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { collector, clock } = slowCollectorOf(pipeline)
  const { database } = pipeline
  await pipeline.create()
  pipeline.clock.advance(MINUTE)
  await database.pool.query('alter table carillon.schedules rename column target_kind to hidden')

  await expect(collector.runOnce()).rejects.toMatchObject({ code: '42703' })
  expect(collector.latest).toMatchObject({ due: 1, schedules: [] })
  expect(await collector.runOnce()).toMatchObject({ due: 1, schedules: [] })

  await database.pool.query('alter table carillon.schedules rename column hidden to target_kind')
  clock.elapsedMs += 200 * SECOND
  expect(await collector.runOnce()).toMatchObject({ due: 1, schedules: [{ count: 1 }] })
})

function collectorOf({ clock, workerDb: db, events }: Pipeline): GaugeCollector {
  return new GaugeCollector({ db, clock, events }, { periodMs: MINUTE })
}

/** A collector whose clock advances by a second each time it is read. */
function slowCollectorOf({ clock: pipelineClock, workerDb: db, events }: Pipeline) {
  const clock = {
    ...systemClock,
    elapsedMs: 0,
    databaseNow: () => pipelineClock.databaseNow(),
    monotonicMs: () => (clock.elapsedMs += SECOND),
  }
  return { collector: new GaugeCollector({ db, clock, events }, { periodMs: MINUTE }), clock }
}
