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

test('a manual run gets the current instant, waits for any worker, and does not change the next slot', async () => {
  const { pipeline, worker, schedule, scheduler, target } = await setup()

  const requested = await scheduler.runNow(CALLER, schedule.id)
  expect(await listWaits(pipeline)).toEqual([{ scheduleId: schedule.id, slot: NOW, waitsFor: 'worker', dueAt: NOW }])
  await worker.runDue()

  expect(requested).toMatchObject({
    scheduledFor: NOW,
    trigger: 'manual',
    state: 'pending',
    attemptCount: 0,
    revision: 1,
  })
  expect(requested).toMatchObject({ waitsFor: 'worker', retryAt: null })
  expect(await scheduler.getRun(CALLER, requested.id)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
  expect(target.calls).toMatchObject([
    { runId: requested.id, trigger: 'manual', idempotencyKey: `sched:${schedule.id}:${NOW}` },
  ])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    nextSlotAt: schedule.nextSlotAt,
    dueAt: schedule.dueAt,
    revision: 1,
    runCount: 1,
  })
})

test('a manual run of a paused schedule runs, and the schedule stays paused', async () => {
  const { worker, schedule, scheduler } = await setup()
  await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

  const { id } = await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()

  expect(await scheduler.getRun(CALLER, id)).toMatchObject({ state: 'succeeded' })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', nextSlotAt: null })
})

test('a manual run of a completed schedule runs, and the schedule stays completed', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({
    cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' },
  })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:01 succeeded'])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test('under allow twenty manual runs within one millisecond are twenty runs with different keys (I2, I5)', async () => {
  const { pipeline, worker, schedule, scheduler, target } = await setup({ policy: { overlap: 'allow' } })

  await Promise.all(Array.from({ length: 20 }, () => scheduler.runNow(CALLER, schedule.id)))
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toHaveLength(20)
  expect(new Set(target.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(20)
  expect(new Set(target.calls.map(({ runId }) => runId)).size).toBe(20)
  expect(Math.max(...target.calls.map(({ scheduledFor }) => scheduledFor))).toBe(NOW)
})

test('a manual run at the millisecond of a slot does not replace that slot: both run (I2, I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ policy: { overlap: 'allow' } })
  pipeline.clock.advance(MINUTE / 2)

  const manual = await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()
  await worker.runDue()

  const slot = NOW + MINUTE / 2
  expect(manual.scheduledFor).toBe(slot - 1)
  expect(await pipeline.ledger(schedule)).toMatchObject([
    { scheduledFor: slot - 1, trigger: 'manual', state: 'succeeded' },
    { scheduledFor: slot, trigger: 'schedule', state: 'succeeded' },
  ])
})

test('a manual run right after a slot gets another free millisecond and does not change that slot (I2)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ policy: { overlap: 'allow' } })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  const [slot] = await pipeline.ledger(schedule)

  await scheduler.runNow(CALLER, schedule.id)
  await scheduler.runNow(CALLER, schedule.id)

  expect((await pipeline.ledger(schedule)).map(({ trigger }) => trigger)).toEqual(['manual', 'manual', 'schedule'])
  expect((await pipeline.ledger(schedule)).at(-1)).toEqual(slot)
})

test('under forbid a manual run is rejected while a run is under way; the error names that run, and nothing is written', async () => {
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

test('under forbid only one of several concurrent manual runs succeeds', async () => {
  const { pipeline, schedule, scheduler } = await setup()

  const requested = await Promise.allSettled(Array.from({ length: 5 }, () => scheduler.runNow(CALLER, schedule.id)))

  expect(requested.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(requested.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'overlap' } })
  expect(await pipeline.ledger(schedule)).toHaveLength(1)
})

test('under queue a manual run waits for its turn behind the running run', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'queue' })

  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'turn', dueAt: null }])
  await answer(0, SUCCEEDED)
  await worker.startDue()

  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'running', trigger: 'manual' })
})

test('under queue a manual run is rejected while another run waits for its turn, and the error names that run', async () => {
  const { pipeline, schedule } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  const waiting = await pipeline.scheduler.runNow(CALLER, schedule.id)

  await expect(pipeline.scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({
    code: 'overlap',
    message:
      'expected no run that waits for its turn, because at most one run may wait for its turn (overlap: queue), ' +
      `got the run ${waiting.id}: wait for it, or cancel it`,
  })
})

test('a manual run of a deleted schedule fails with schedule_not_found', async () => {
  const { schedule, scheduler } = await setup()
  await scheduler.delete(CALLER, schedule.id)

  await expect(scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({ code: 'schedule_not_found' })
})

test('a manual run does not count for maxRuns and does not move the anchor', async () => {
  const cadence = { kind: 'interval', every: 'PT1M', startAt: '2026-03-02T09:01:00Z', maxRuns: 2 }
  const { pipeline, worker, schedule, scheduler } = await setup({ cadence })
  await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()

  for (let slot = 0; slot < 3; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  expect(await pipeline.lines(schedule)).toEqual(['09:00 succeeded', '09:01 succeeded', '09:02 succeeded'])
})
