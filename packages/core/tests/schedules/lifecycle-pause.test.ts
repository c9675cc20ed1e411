import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const BOB = { ...CALLER, subject: 'user:bob' }
const HOLIDAYS = { reason: 'holidays' }

async function setup(input: object = {}) {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create(input)
  return { pipeline, worker: pipeline.worker(), schedule, scheduler: pipeline.scheduler }
}

test('a pause records its actor, time and reason, and the schedule has no next slot (I1)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  const emitted: unknown[] = []
  pipeline.events.on('schedule.paused', (event) => emitted.push(event))

  const paused = await scheduler.pause(BOB, schedule.id, HOLIDAYS)
  pipeline.clock.advance(5 * MINUTE)
  await worker.runDue()

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
  expect((await scheduler.history(CALLER, schedule.id)).toReversed()).toMatchObject([
    { change: 'created' },
    { change: 'paused', actor: 'user:bob', reason: 'holidays', nextSlotAt: null, changedAt: pausedAt },
  ])
  expect(emitted).toMatchObject([{ scheduleId: schedule.id, actor: 'user:bob', reason: 'holidays' }])
  expect(await pipeline.lines(schedule)).toEqual([])
})

test('slots that are due when a schedule is paused are skipped as paused (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.skip(CALLER, schedule.id, Date.parse('2026-03-02T09:02:00Z'))
  pipeline.clock.advance(3 * MINUTE)

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 skipped paused',
    '09:02 skipped excluded',
    '09:03 skipped paused',
  ])
})

test('a pause skips a run that waits for its turn, and a running run continues (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped paused'])
  await answer(0, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 skipped paused'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a run that a pause skips while it waits for its turn is not counted', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 2 })

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped paused'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1 })
})

test('a run whose turn came before the pause is still taken by a worker', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  await answer(0, SUCCEEDED)

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('a run that was handed back untried runs on another worker while its schedule is paused', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.target.script = held().script
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  const drained = worker.loop.drain(0)
  pipeline.clock.advance(1)
  await drained

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending', waitsFor: 'worker' }])
  pipeline.target.script = () => SUCCEEDED
  await pipeline.worker('other').runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', runCount: 1 })
})

test('a pause does not skip a manual run that waits for its turn', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)

  await pipeline.scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  await answer(0, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'running' })
})

test('a run that waits for its retry is retried while its schedule is paused', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(10_000)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a paused schedule cannot be paused again, and an active one cannot be resumed', async () => {
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
  { what: 'the prefix of auto-pause reasons', reason: 'auto:mine' },
  { what: 'a novel', reason: 'x'.repeat(501) },
  { what: 'a text that Postgres cannot store', reason: 'a\0b' },
  { what: 'no text', reason: 7 as unknown as string },
])('a pause with $what as its reason is rejected', async ({ reason }) => {
  const { schedule, scheduler } = await setup()

  const paused = scheduler.pause(CALLER, schedule.id, { reason })

  await expect(paused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'reason' }] })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active' })
})

test('a resumed schedule continues with the next slot strictly ahead, and records the actor', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(MINUTE / 2)

  const resumed = await scheduler.resume(BOB, schedule.id)
  await worker.runDue()

  const now = pipeline.clock.instant
  expect(resumed).toMatchObject({ state: 'active', nextSlotAt: now + MINUTE, pausedReason: null, pausedBy: null })
  expect(await pipeline.lines(schedule)).toEqual([])
  expect((await scheduler.history(CALLER, schedule.id))[0]).toMatchObject({
    change: 'resumed',
    actor: 'user:bob',
    nextSlotAt: now + MINUTE,
    changedAt: now,
  })
})

test('a slot that ran before a pause does not run again after it, however quickly the schedule is resumed (I2)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  for (let again = 0; again < 3; again += 1) {
    await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
    await scheduler.resume(CALLER, schedule.id)
    await worker.runDue()
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await listWaits(pipeline)).toEqual([])
})

test('a schedule whose last slot passed while it was paused is completed when it is resumed', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  await scheduler.pause(CALLER, schedule.id, HOLIDAYS)
  pipeline.clock.advance(MINUTE)

  const resumed = await scheduler.resume(CALLER, schedule.id)
  await worker.runDue()

  expect(resumed).toMatchObject({ state: 'completed', nextSlotAt: null })
  expect(pipeline.target.calls).toEqual([])
})
