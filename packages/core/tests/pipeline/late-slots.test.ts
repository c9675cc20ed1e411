import { expect, test } from 'vitest'

import { CadenceCache } from '../../src/cadences/cadence-cache.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, HOUR, MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const EVERY_MINUTE = JSON.stringify({ kind: 'cron', expression: '* * * * *', timezone: 'UTC' })

function yearly(): object {
  return { kind: 'cron', expression: '0 10 2 3 *', timezone: 'UTC' }
}

async function countLines({ db }: Pipeline): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.runs`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

test('a once schedule runs even if its slot is older than the retention and its month was dropped (I6, I11)', async () => {
  const pipeline = await pipelineAt(START)
  const once = { kind: 'once', at: '2026-03-02T10:00:00Z' }
  const schedule = await pipeline.create({ cadence: once, policy: { missed: 'run_once' } })
  await sql`drop table if exists carillon.runs_2026_03, carillon.attempts_2026_03, carillon.transcripts_2026_03`.execute(
    pipeline.db,
  )

  pipeline.clock.advance(91 * DAY)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed', runCount: 1 })
})

test('under run_once the latest slot of a yearly schedule runs whatever its age, and the cadence continues (I11)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create({ cadence: yearly(), policy: { missed: 'run_once' } })

  pipeline.clock.advance(200 * DAY)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
  const { nextSlotAt } = await pipeline.scheduler.get(CALLER, schedule.id)
  expect(nextSlotAt).toBe(Date.parse('2027-03-02T10:00:00Z'))
})

test('under skip a slot that is older than the retention gets no line, and the cadence continues', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create({ cadence: yearly(), policy: { missed: 'skip' } })

  pipeline.clock.advance(200 * DAY)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual([])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', runCount: 0 })
})

test.each([6.9, 0, -1, 3651, Number.NaN, Number.POSITIVE_INFINITY])(
  'a retention of %s days is rejected',
  async (retentionDays) => {
    const { db, targets } = await pipelineAt(START)

    expect(() => new Scheduler({ db, targets }, { retentionDays })).toThrow(
      /retentionDays: expected a number from 7 to 3650, got/,
    )
  },
)

test.each([7, 3650])('a retention of %s days is accepted', async (retentionDays) => {
  const { db, targets } = await pipelineAt(START)

  expect(() => new Scheduler({ db, targets }, { retentionDays })).not.toThrow()
})

test('one begin writes 10,000 lines at most, however many schedules have missed slots (I6)', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  for (let made = 0; made < 25; made += 1) await pipeline.create({ policy: { missed: 'run_once' } })
  pipeline.clock.advance(10 * HOUR)
  await worker.heartbeat.runOnce()

  await worker.loop.runOnce()
  expect(await countLines(pipeline)).toBe(10_000)
  expect(pipeline.target.calls).toEqual([])

  await worker.runDue()
  expect(await countLines(pipeline)).toBe(25 * 600)
  expect(pipeline.target.calls).toHaveLength(25)
})

test('if only excluded slots follow a portion, the latest slot of the portion still runs (I11)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create({ policy: { missed: 'run_once' } })
  // A portion of a single schedule has 1,000 slots.
  const lastOfPortion = Date.parse('2026-03-02T09:00:00Z') + 1000 * MINUTE
  for (const slot of [lastOfPortion + MINUTE, lastOfPortion + 2 * MINUTE]) {
    await pipeline.scheduler.skip(CALLER, schedule.id, slot)
  }

  pipeline.clock.advance(1002 * MINUTE)
  await pipeline.worker().runDue()

  const { rows } = await sql`
    select scheduled_for, state, reason from carillon.runs order by scheduled_for desc limit 3`.execute(pipeline.db)
  expect(rows).toEqual([
    { scheduled_for: new Date(lastOfPortion + 2 * MINUTE), state: 'skipped', reason: 'excluded' },
    { scheduled_for: new Date(lastOfPortion + MINUTE), state: 'skipped', reason: 'excluded' },
    { scheduled_for: new Date(lastOfPortion), state: 'succeeded', reason: null },
  ])
  expect(await countLines(pipeline)).toBe(1002)
})

test('the due slots of schedules that share a cadence are computed once', () => {
  const cadences = new CadenceCache()
  const first = Date.parse('2026-03-02T09:01:00Z')
  const input = { first, until: first + 5 * MINUTE, limit: 3 }

  const answer = cadences.dueSlots(EVERY_MINUTE, input)

  expect(answer).toEqual({ due: [first, first + MINUTE, first + 2 * MINUTE], next: first + 3 * MINUTE })
  expect(cadences.dueSlots(EVERY_MINUTE, input)).toBe(answer)
  expect(cadences.dueSlots(EVERY_MINUTE, { ...input, limit: 2 }).due).toHaveLength(2)
  expect(cadences.dueSlots(EVERY_MINUTE, { ...input, until: first + MINUTE }).due).toHaveLength(2)
  expect(cadences.dueSlots(EVERY_MINUTE, { ...input, first: first + 4 * MINUTE }).due).toHaveLength(2)
})
