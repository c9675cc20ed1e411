import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, HOUR, MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()

function cron(expression: string, timezone = 'UTC'): object {
  return { kind: 'cron', expression, timezone }
}

/** The number of lines by state and reason, for ledgers that are too long to list. */
async function tally({ db }: Pipeline, { id }: { id: string }): Promise<Record<string, number>> {
  const { rows } = await sql<{ line: string; count: number }>`
    select concat_ws(' ', state, reason) as line, count(*)::int as count
    from carillon.runs where schedule_id = ${id} group by 1`.execute(db)
  return Object.fromEntries(rows.map(({ line, count }) => [line, count]))
}

test.each([
  { deadline: 300, lateMs: 0, line: 'succeeded' },
  { deadline: 300, lateMs: 299_999, line: 'succeeded' },
  { deadline: 300, lateMs: 300_000, line: 'succeeded' },
  { deadline: 300, lateMs: 300_001, line: 'skipped missed' },
  { deadline: 1, lateMs: 1000, line: 'succeeded' },
  { deadline: 1, lateMs: 1001, line: 'skipped missed' },
  { deadline: 3000, lateMs: 3_000_000, line: 'succeeded' },
])(
  'a slot that is $lateMs ms late under a deadline of $deadline s is $line (I6)',
  async ({ deadline, lateMs, line }) => {
    const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
    const policy = { startingDeadlineSeconds: deadline }
    const schedule = await pipeline.create({ cadence: cron('0 * * * *'), policy })

    pipeline.clock.advance(HOUR + lateMs)
    await pipeline.worker().runDue()

    expect(await pipeline.lines(schedule)).toEqual([`10:00 ${line}`])
  },
)

test('the deadline of a recurring schedule is five minutes by default', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')

  const schedule = await pipeline.create()

  expect(schedule.policy).toMatchObject({ missed: 'skip', startingDeadlineSeconds: 300 })
})

test.each([
  // A slot every ten minutes. The worker is back at 10:09, nine minutes after the latest slot.
  { missed: 'skip', lastLine: '10:00 skipped missed', calls: 0 },
  { missed: 'run_once', lastLine: '10:00 succeeded', calls: 1 },
])(
  'after an outage of an hour $missed leaves one line per slot and $calls runs (I6, I11)',
  async ({ missed, lastLine, calls }) => {
    const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
    const schedule = await pipeline.create({ cadence: cron('*/10 * * * *'), policy: { missed } })

    pipeline.clock.advance(69 * MINUTE)
    await pipeline.worker().runDue()

    expect(await pipeline.lines(schedule)).toEqual([
      '09:10 skipped missed',
      '09:20 skipped missed',
      '09:30 skipped missed',
      '09:40 skipped missed',
      '09:50 skipped missed',
      lastLine,
    ])
    expect(pipeline.target.calls).toHaveLength(calls)
    expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
      state: 'active',
      nextSlotAt: Date.parse('2026-03-02T10:10:00Z'),
      consecutiveFailures: 0,
      runCount: calls,
    })
  },
)

test('under skip only the latest slot of an outage runs, if it is within its deadline (I11)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const schedule = await pipeline.create()

  pipeline.clock.advance(HOUR)
  await pipeline.worker().runDue()

  expect(await tally(pipeline, schedule)).toEqual({ 'skipped missed': 59, succeeded: 1 })
  expect((await pipeline.lines(schedule)).at(-1)).toBe('10:00 succeeded')
})

test('a late run is not repeated, and the slots after an outage run at their instants', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: cron('*/10 * * * *'), policy: { missed: 'run_once' } })

  pipeline.clock.advance(25 * MINUTE)
  await worker.runDue()
  await worker.runDue()
  pipeline.clock.advance(5 * MINUTE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:10 skipped missed', '09:20 succeeded', '09:30 succeeded'])
})

test('a once schedule runs once, however late it is, and is then completed', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T10:00:00Z' } })

  pipeline.clock.advance(3 * DAY)
  await worker.runDue()
  pipeline.clock.advance(DAY)
  await worker.runDue()

  expect(schedule.policy.missed).toBe('run_once')
  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed', nextSlotAt: null })
})

test('a once schedule under skip is missed when it is late, and is then completed (I6)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const cadence = { kind: 'once', at: '2026-03-02T10:00:00Z' }
  const schedule = await pipeline.create({ cadence, policy: { missed: 'skip' } })

  pipeline.clock.advance(2 * HOUR)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 skipped missed'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test.each(['skip', 'run_once'])(
  'every one of 2,500 missed slots gets its line, in portions, and under %s at most one runs (I6, I11)',
  async (missed) => {
    const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
    const schedule = await pipeline.create({ policy: { missed } })

    pipeline.clock.advance(2500 * MINUTE)
    await pipeline.worker().runDue()

    expect(await tally(pipeline, schedule)).toEqual({ 'skipped missed': 2499, succeeded: 1 })
    expect(pipeline.target.calls.map(({ scheduledFor }) => scheduledFor)).toEqual([
      Date.parse('2026-03-02T09:00:00Z') + 2500 * MINUTE,
    ])
  },
)

test('a cadence whose last slot lies in an outage is completed, and its last slot runs late', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const cadence = { ...cron('* * * * *'), endAt: '2026-03-02T09:03:00Z' }
  const schedule = await pipeline.create({ cadence, policy: { missed: 'run_once' } })

  pipeline.clock.advance(DAY)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 skipped missed', '09:02 skipped missed', '09:03 succeeded'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test('slots that are older than the retention get no line, and all later slots get one', async () => {
  const pipeline = await pipelineAt('2026-01-05T00:00:00Z')
  const schedule = await pipeline.create({ cadence: cron('0 0 * * *') })

  pipeline.clock.advance(150 * DAY)
  await pipeline.worker().runDue()

  const ledger = await pipeline.ledger(schedule)
  expect(ledger).toHaveLength(91)
  expect(ledger[0]?.scheduledFor).toBe(pipeline.clock.instant - 90 * DAY)
})

test.each([
  {
    what: 'a fixed time of day in the gap of Madrid',
    cadence: cron('30 2 * * *', 'Europe/Madrid'),
    from: '2026-03-28T00:00:00Z',
    to: '2026-03-30T12:00:00Z',
    slots: ['2026-03-28T01:30:00.000Z', '2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'],
  },
  {
    what: 'a fixed time of day in the fold of New York',
    cadence: cron('30 1 * * *', 'America/New_York'),
    from: '2026-10-31T00:00:00Z',
    to: '2026-11-02T12:00:00Z',
    slots: ['2026-10-31T05:30:00.000Z', '2026-11-01T05:30:00.000Z', '2026-11-02T06:30:00.000Z'],
  },
])('an outage over a change of the clocks leaves a line for each day: $what', async ({ cadence, from, to, slots }) => {
  const pipeline = await pipelineAt(from)
  const schedule = await pipeline.create({ cadence })

  pipeline.clock.advance(Date.parse(to) - Date.parse(from))
  await pipeline.worker().runDue()

  const ledger = await pipeline.ledger(schedule)
  expect(ledger.map(({ scheduledFor }) => new Date(scheduledFor).toISOString())).toEqual(slots)
  expect(new Set(ledger.map(({ reason }) => reason))).toEqual(new Set(['missed']))
})

test('a paused schedule gets no lines, and after a resume only its next slot runs', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { missed: 'run_once' } })
  await pipeline.scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

  pipeline.clock.advance(HOUR)
  await worker.runDue()
  const resumed = await pipeline.scheduler.resume(CALLER, schedule.id)
  await worker.runDue()
  expect(await pipeline.lines(schedule)).toEqual([])
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(resumed.nextSlotAt).toBe(Date.parse('2026-03-02T10:01:00Z'))
  expect(await pipeline.lines(schedule)).toEqual(['10:01 succeeded'])
})
