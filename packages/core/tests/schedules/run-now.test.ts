import { expect, test } from 'vitest'

import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const NOW = Date.parse(START)

async function setup(input: object = {}) {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create(input)
  return { pipeline, worker: pipeline.worker(), schedule, scheduler: pipeline.scheduler, target: pipeline.target }
}

test('a run-now is a run of this instant that waits for any worker, and does not change the next slot', async () => {
  const { pipeline, worker, schedule, scheduler, target } = await setup()

  const asked = await scheduler.runNow(CALLER, schedule.id)
  expect(await listWaits(pipeline)).toEqual([{ scheduleId: schedule.id, slot: NOW, waitsFor: 'worker', dueAt: NOW }])
  await worker.keep()

  expect(asked).toMatchObject({ scheduledFor: NOW, trigger: 'manual', state: 'pending', attemptCount: 0, revision: 1 })
  expect(asked).toMatchObject({ waitsFor: 'worker', retryAt: null })
  expect(await scheduler.getRun(CALLER, asked.id)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
  expect(target.calls).toMatchObject([
    { runId: asked.id, trigger: 'manual', idempotencyKey: `sched:${schedule.id}:${NOW}` },
  ])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    nextSlotAt: schedule.nextSlotAt,
    dueAt: schedule.dueAt,
    revision: 1,
    runCount: 1,
  })
})

test('a run-now is allowed while paused, and leaves the schedule paused', async () => {
  const { worker, schedule, scheduler } = await setup()
  await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

  const { id } = await scheduler.runNow(CALLER, schedule.id)
  await worker.keep()

  expect(await scheduler.getRun(CALLER, id)).toMatchObject({ state: 'succeeded' })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', nextSlotAt: null })
})

test('a run-now of a completed schedule runs, and the schedule stays completed', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  pipeline.clock.advance(MINUTE)
  await worker.keep()

  await scheduler.runNow(CALLER, schedule.id)
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:01 succeeded'])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test('twenty run-nows within one millisecond are twenty runs with a key each, under allow (I2, I5)', async () => {
  const { pipeline, worker, schedule, scheduler, target } = await setup({ policy: { overlap: 'allow' } })

  await Promise.all(Array.from({ length: 20 }, () => scheduler.runNow(CALLER, schedule.id)))
  await worker.keep()

  expect(await pipeline.ledger(schedule)).toHaveLength(20)
  expect(new Set(target.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(20)
  expect(new Set(target.calls.map(({ runId }) => runId)).size).toBe(20)
  expect(Math.max(...target.calls.map(({ scheduledFor }) => scheduledFor))).toBe(NOW)
})

test('a run-now at the millisecond of a slot does not replace that slot: both run (I2, I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ policy: { overlap: 'allow' } })
  pipeline.clock.advance(MINUTE / 2)

  const manual = await scheduler.runNow(CALLER, schedule.id)
  await worker.keep()
  await worker.keep()

  const slot = NOW + MINUTE / 2
  expect(manual.scheduledFor).toBe(slot - 1)
  expect(await pipeline.ledger(schedule)).toMatchObject([
    { scheduledFor: slot - 1, trigger: 'manual', state: 'succeeded' },
    { scheduledFor: slot, trigger: 'schedule', state: 'succeeded' },
  ])
})

test('a run-now just after a slot ran looks past it for a free millisecond, and touches it not (I2)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ policy: { overlap: 'allow' } })
  pipeline.clock.advance(MINUTE / 2)
  await worker.keep()
  const [slot] = await pipeline.ledger(schedule)

  await scheduler.runNow(CALLER, schedule.id)
  await scheduler.runNow(CALLER, schedule.id)

  expect((await pipeline.ledger(schedule)).map(({ trigger }) => trigger)).toEqual(['manual', 'manual', 'schedule'])
  expect((await pipeline.ledger(schedule)).at(-1)).toEqual(slot)
})

test('under forbid a run-now is refused while a run is under way; the error names that run, and nothing is written', async () => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)
  const before = await countRows(pipeline)

  const refused = pipeline.scheduler.runNow(CALLER, schedule.id)

  await expect(refused).rejects.toMatchObject({
    code: 'overlap',
    message: expect.stringContaining(running?.id ?? '?') as string,
  })
  expect(await countRows(pipeline)).toEqual(before)
  await answer(0, SUCCEEDED)
  await expect(pipeline.scheduler.runNow(CALLER, schedule.id)).resolves.toMatchObject({ state: 'pending' })
})

test('under forbid one of several concurrent run-nows succeeds', async () => {
  const { pipeline, schedule, scheduler } = await setup()

  const asked = await Promise.allSettled(Array.from({ length: 5 }, () => scheduler.runNow(CALLER, schedule.id)))

  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(asked.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'overlap' } })
  expect(await pipeline.ledger(schedule)).toHaveLength(1)
})

test('under queue a run-now waits for its turn behind the run that is under way', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'turn', dueAt: null }])
  await answer(0, SUCCEEDED)
  await worker.begin()

  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'running', trigger: 'manual' })
})

test('a run-now of a deleted schedule fails with schedule_not_found', async () => {
  const { schedule, scheduler } = await setup()
  await scheduler.delete(CALLER, schedule.id)

  await expect(scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({ code: 'schedule_not_found' })
})

test('a run-now does not count for maxRuns and does not move the anchor', async () => {
  const cadence = { kind: 'interval', every: 'PT1M', startAt: '2026-03-02T09:01:00Z', maxRuns: 2 }
  const { pipeline, worker, schedule, scheduler } = await setup({ cadence })
  await scheduler.runNow(CALLER, schedule.id)
  await worker.keep()

  for (let slot = 0; slot < 3; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.keep()
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded', '09:01 succeeded', '09:02 succeeded'])
})
