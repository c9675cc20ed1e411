import { expect, test } from 'vitest'

import { emptiedPipelines } from './emptied-pipeline.ts'
import { holdRun } from './held-run.ts'
import { CALLER, MINUTE } from './pipeline.ts'
import { FAIL, held, SUCCEEDED } from './scripted-target.ts'
import { listWaits } from './waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const BOB = { ...CALLER, subject: 'user:bob' }
const HOLIDAYS = { reason: 'holidays' }

async function setup(input: object = {}) {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create(input)
  return { pipeline, worker: pipeline.worker(), schedule, scheduler: pipeline.scheduler }
}

test('a pause says who, when and why, and takes the schedule off the agenda (E-61, E-75, I1)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  const told: unknown[] = []
  pipeline.events.on('schedule.paused', (event) => told.push(event))

  const paused = await scheduler.pause(BOB, schedule.id, HOLIDAYS)
  pipeline.clock.advance(5 * MINUTE)
  await worker.keep()

  const pausedAt = Date.parse(START)
  expect(paused).toMatchObject({
    state: 'paused',
    nextSlotAt: null,
    dueAt: null,
    pausedBy: 'user:bob',
    pausedReason: 'holidays',
    pausedAt,
    revision: 1,
  })
  expect(await scheduler.history(CALLER, schedule.id)).toMatchObject([
    { change: 'created' },
    { change: 'paused', actor: 'user:bob', reason: 'holidays', nextSlotAt: null, changedAt: pausedAt },
  ])
  expect(told).toMatchObject([{ scheduleId: schedule.id, actor: 'user:bob', reason: 'holidays' }])
  expect(await pipeline.lines(schedule)).toEqual([])
})

test('slots that are due when a schedule is paused are recorded as paused, and not run (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.skip(CALLER, schedule.id, Date.parse('2026-03-02T09:02:00Z'))
  pipeline.clock.advance(3 * MINUTE)

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 skipped paused',
    '09:02 skipped excluded',
    '09:03 skipped paused',
  ])
})

test('a run that waits for its turn is given up, one under way goes on (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped paused'])
  await answer(0, SUCCEEDED)
  await worker.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 skipped paused'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a run that waited for its turn and was given up by a pause is not counted as a run', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 2 })

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped paused'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1 })
})

test('a run whose turn has come before the pause is taken after it: it waits for a worker only', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  await answer(0, SUCCEEDED)

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await worker.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('a run that was handed back untried goes on elsewhere while its schedule is paused: it has begun', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.target.script = held().script
  pipeline.clock.advance(MINUTE / 2)
  await worker.begin()
  const drained = worker.keeper.drain(0)
  pipeline.clock.advance(1)
  await drained

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending', waitsFor: 'worker' }])
  pipeline.target.script = () => SUCCEEDED
  await pipeline.worker('other').keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', runCount: 1 })
})

test('a run-now that waits for its turn is not given up: it may run while paused (B-38, X-22)', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await answer(0, SUCCEEDED)
  await worker.begin()

  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'running' })
})

test('a run that waits to be retried is tried again while its schedule is paused: it has begun', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  pipeline.clock.advance(MINUTE / 2)
  await worker.keep()

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(10_000)
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a schedule cannot be paused twice, nor resumed when it is not paused', async () => {
  const { schedule, scheduler } = await setup()

  await expect(scheduler.resume(CALLER, schedule.id)).rejects.toMatchObject({ code: 'state_conflict' })
  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await expect(scheduler.pause(BOB, schedule.id, { reason: 'mine' })).rejects.toMatchObject({ code: 'state_conflict' })

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ pausedReason: 'holidays', pausedBy: 'user:alice' })
  expect(await scheduler.history(CALLER, schedule.id)).toHaveLength(2)
})

test.each([
  { what: 'nothing', reason: '' },
  { what: 'blanks', reason: '   ' },
  { what: 'the system’s own word', reason: 'auto:mine' },
  { what: 'a novel', reason: 'x'.repeat(501) },
  { what: 'a text that Postgres cannot keep', reason: 'a\0b' },
  { what: 'no text', reason: 7 as unknown as string },
])('a pause for $what is refused', async ({ reason }) => {
  const { schedule, scheduler } = await setup()

  const paused = scheduler.pause(CALLER, schedule.id, { reason })

  await expect(paused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'reason' }] })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active' })
})

test('a resumed schedule goes on with the next slot strictly ahead, and says who resumed it (A-44, A-07)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(MINUTE / 2)

  const resumed = await scheduler.resume(BOB, schedule.id)
  await worker.keep()

  const now = pipeline.clock.instant
  expect(resumed).toMatchObject({ state: 'active', nextSlotAt: now + MINUTE, pausedReason: null, pausedBy: null })
  expect(await pipeline.lines(schedule)).toEqual([])
  expect((await scheduler.history(CALLER, schedule.id)).at(-1)).toMatchObject({
    change: 'resumed',
    actor: 'user:bob',
    nextSlotAt: now + MINUTE,
    changedAt: now,
  })
})

test('a slot that ran before the pause does not run again after it, however quickly it is resumed (A-44, I2)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.clock.advance(MINUTE / 2)
  await worker.keep()

  for (let again = 0; again < 3; again += 1) {
    await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
    await scheduler.resume(CALLER, schedule.id)
    await worker.keep()
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await listWaits(pipeline)).toEqual([])
})

test('a schedule whose last slot passed while it was paused is complete when it is resumed', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(MINUTE)

  const resumed = await scheduler.resume(CALLER, schedule.id)
  await worker.keep()

  expect(resumed).toMatchObject({ state: 'completed', nextSlotAt: null })
  expect(pipeline.target.calls).toEqual([])
})
