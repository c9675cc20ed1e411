import { expect, test } from 'vitest'

import type { Outcome } from '../../src/ports/target.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, HOUR, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const AUTO = { state: 'paused', pausedReason: 'auto:consecutive_failures', pausedBy: 'system:carillon' }

async function setup(autoPauseThreshold?: number, input: object = {}) {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const policy = autoPauseThreshold === undefined ? {} : { autoPauseThreshold }
  const schedule = await pipeline.create({ policy, ...input })
  pipeline.clock.advance(MINUTE / 2)
  return { pipeline, worker, schedule, scheduler: pipeline.scheduler }
}

/** Lets the next slots come due one by one, each with its outcome. */
async function run(pipeline: Pipeline, worker: TestWorker, outcomes: readonly Outcome[]): Promise<void> {
  for (const outcome of outcomes) {
    pipeline.target.script = () => outcome
    await worker.keep()
    pipeline.clock.advance(MINUTE)
  }
}

function times(count: number, outcome: Outcome): Outcome[] {
  return Array.from({ length: count }, () => outcome)
}

test.each([
  { threshold: 3, name: 'three' },
  { threshold: undefined, name: 'ten, by default' },
])('a schedule pauses itself with the last of $name consecutive failures, not before', async ({ threshold }) => {
  const { pipeline, worker, schedule, scheduler } = await setup(threshold)
  const count = threshold ?? 10

  await run(pipeline, worker, times(count - 1, FAIL_FOR_GOOD))
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: count - 1 })
  const failedAt = pipeline.clock.instant
  await run(pipeline, worker, [FAIL_FOR_GOOD])
  await run(pipeline, worker, times(3, SUCCEEDED))

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    ...AUTO,
    pausedAt: failedAt,
    nextSlotAt: null,
    dueAt: null,
    failureCount: count,
  })
  expect(pipeline.target.calls).toHaveLength(count)
})

test('a threshold of 0 never pauses', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(0)

  await run(pipeline, worker, times(15, FAIL_FOR_GOOD))

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 15 })
})

test('a success in between starts the count anew', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)

  await run(pipeline, worker, [...times(2, FAIL_FOR_GOOD), SUCCEEDED, ...times(2, FAIL_FOR_GOOD)])

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    consecutiveFailures: 2,
    failureCount: 4,
  })
})

test('a run that is cancelled neither counts nor forgives', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)

  await run(pipeline, worker, [...times(2, FAIL_FOR_GOOD), { kind: 'cancelled' }])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  await run(pipeline, worker, [FAIL_FOR_GOOD])

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('an attempt that will be retried neither counts nor forgives; the run counts once, when it has failed', async () => {
  const policy = { autoPauseThreshold: 3, retry: { maxAttempts: 5, baseSeconds: 1, capSeconds: 1 } }
  const { pipeline, worker, schedule, scheduler } = await setup(3, { policy })
  await run(pipeline, worker, [FAIL_FOR_GOOD])
  pipeline.target.script = () => FAIL

  await worker.keep()
  for (let attempt = 2; attempt <= 4; attempt += 1) {
    pipeline.clock.advance(1000)
    await worker.keep()
    expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 1 })
  }
  pipeline.clock.advance(1000)
  await worker.keep()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  expect(pipeline.target.calls).toHaveLength(6)
})

test('a slot skipped for overlap or missed is no failure', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))

  pipeline.clock.advance(HOUR)
  pipeline.target.script = () => ({ kind: 'cancelled' })
  await worker.keep()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
})

test('a failed run-now counts as any other', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))
  pipeline.target.script = () => FAIL_FOR_GOOD

  await scheduler.pause(CALLER, schedule.id, { reason: 'a look' })
  await scheduler.runNow(CALLER, schedule.id)
  await worker.keep()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'a look',
    consecutiveFailures: 3,
  })
})

test('the pause is in the history, told by an event, and told from one by hand', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  const byHand = await pipeline.create({ name: 'by hand' })
  await scheduler.pause(CALLER, byHand.id, { reason: 'consecutive failures' })
  const told: unknown[] = []
  worker.events.on('schedule.paused', (event) => told.push(event))

  await run(pipeline, worker, times(3, FAIL_FOR_GOOD))

  const reason = 'auto:consecutive_failures'
  expect(await scheduler.history(CALLER, schedule.id)).toMatchObject([
    { change: 'created', actor: 'user:alice' },
    {
      change: 'paused',
      actor: 'system:carillon',
      reason,
      nextSlotAt: null,
      changedAt: pipeline.clock.instant - MINUTE,
    },
  ])
  expect(told).toMatchObject([{ scheduleId: schedule.id, actor: 'system:carillon', reason }])
  expect(await scheduler.get(CALLER, byHand.id)).toMatchObject({
    pausedReason: 'consecutive failures',
    pausedBy: 'user:alice',
  })
})

test('nobody can pause by hand with a reason that looks like the system’s', async () => {
  const { schedule, scheduler } = await setup()

  const paused = scheduler.pause(CALLER, schedule.id, { reason: 'auto:consecutive_failures' })

  await expect(paused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'reason' }] })
})

test('a slot that is due when the last failure is settled is not run, and leaves its line (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), {
    overlap: 'forbid',
    autoPauseThreshold: 3,
  })
  await answer(0, FAIL_FOR_GOOD)
  await nextSlot()
  await answer(1, FAIL_FOR_GOOD)
  await nextSlot()

  await pipeline.pass(MINUTE, worker)
  await answer(2, FAIL_FOR_GOOD)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 3 })
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 failed',
    '09:02 failed',
    '09:03 failed',
    '09:04 skipped paused',
  ])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
  expect((await pipeline.scheduler.history(CALLER, schedule.id)).at(-1)).toMatchObject({
    change: 'paused',
    actor: 'system:carillon',
    reason: 'auto:consecutive_failures',
  })
})

test('however many slots are due then, each leaves its line before the pause (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), {
    overlap: 'forbid',
    autoPauseThreshold: 3,
  })
  await answer(0, FAIL_FOR_GOOD)
  await nextSlot()
  await answer(1, FAIL_FOR_GOOD)
  await nextSlot()
  await pipeline.pass(MINUTE, worker)
  await answer(2, FAIL_FOR_GOOD)

  pipeline.clock.advance(1099 * MINUTE)
  await worker.keep()

  const page = await pipeline.scheduler.listRuns(CALLER, schedule.id, { limit: 200 })
  expect(page[0]?.scheduledFor).toBe(pipeline.clock.instant)
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.runs': 3 + 1100 })
  expect(new Set(page.map(({ state, reason }) => `${state} ${reason}`))).toEqual(new Set(['skipped paused']))
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('what waits for its turn when the schedule pauses itself is given up and not counted, as by hand (I6)', async () => {
  const { pipeline, worker, schedule, answer, nextSlot } = await holdRun(await pipelineAt(START), {
    overlap: 'queue',
    autoPauseThreshold: 3,
  })
  await answer(0, FAIL_FOR_GOOD)
  await nextSlot()
  await answer(1, FAIL_FOR_GOOD)
  await nextSlot()
  await nextSlot()

  await answer(2, FAIL_FOR_GOOD)
  await worker.begin()

  expect((await pipeline.lines(schedule)).slice(-2)).toEqual(['09:03 failed', '09:04 skipped paused'])
  expect(await listWaits(pipeline)).toEqual([])
  expect(pipeline.target.calls).toHaveLength(3)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ ...AUTO, runCount: 3, failureCount: 3 })
})

test('resuming forgives: the count starts anew, and the reason is gone', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(3, FAIL_FOR_GOOD))

  const resumed = await scheduler.resume(CALLER, schedule.id)
  expect(resumed).toMatchObject({ state: 'active', consecutiveFailures: 0, pausedReason: null, failureCount: 3 })
  pipeline.clock.advance(MINUTE)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
})

test('a threshold lowered below the count pauses at the next slot, which says so (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(10)
  await run(pipeline, worker, times(4, FAIL_FOR_GOOD))

  await scheduler.edit(CALLER, schedule.id, { policy: { autoPauseThreshold: 3 } }, { revision: 1 })
  await worker.keep()

  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:05 skipped paused')
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('failures of one schedule pause no other', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  const healthy = await pipeline.create({ name: 'healthy', policy: { autoPauseThreshold: 3 } })

  for (let slot = 0; slot < 4; slot += 1) {
    pipeline.target.script = ({ scheduleId }) => (scheduleId === schedule.id ? FAIL_FOR_GOOD : SUCCEEDED)
    await worker.keep()
    pipeline.clock.advance(MINUTE)
  }

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
  expect(await scheduler.get(CALLER, healthy.id)).toMatchObject({ state: 'active', consecutiveFailures: 0 })
})
