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

/** Runs one slot after another, each with the given outcome. */
async function run(pipeline: Pipeline, worker: TestWorker, outcomes: readonly Outcome[]): Promise<void> {
  for (const outcome of outcomes) {
    pipeline.target.script = () => outcome
    await worker.runDue()
    pipeline.clock.advance(MINUTE)
  }
}

function times(count: number, outcome: Outcome): Outcome[] {
  return Array.from({ length: count }, () => outcome)
}

test.each([
  { threshold: 3, name: 'three' },
  { threshold: undefined, name: 'ten, by default' },
])('a schedule pauses itself at the last of $name consecutive failures, and not earlier', async ({ threshold }) => {
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

test('a success resets the count of consecutive failures', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)

  await run(pipeline, worker, [...times(2, FAIL_FOR_GOOD), SUCCEEDED, ...times(2, FAIL_FOR_GOOD)])

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    consecutiveFailures: 2,
    failureCount: 4,
  })
})

test('a cancelled run neither increases nor resets the count', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)

  await run(pipeline, worker, [...times(2, FAIL_FOR_GOOD), { kind: 'cancelled' }])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  await run(pipeline, worker, [FAIL_FOR_GOOD])

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('an attempt that will be retried does not change the count; its run counts once when it fails', async () => {
  const policy = { autoPauseThreshold: 3, retry: { maxAttempts: 5, baseSeconds: 1, capSeconds: 1 } }
  const { pipeline, worker, schedule, scheduler } = await setup(3, { policy })
  await run(pipeline, worker, [FAIL_FOR_GOOD])
  pipeline.target.script = () => FAIL

  await worker.runDue()
  for (let attempt = 2; attempt <= 4; attempt += 1) {
    pipeline.clock.advance(1000)
    await worker.runDue()
    expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 1 })
  }
  pipeline.clock.advance(1000)
  await worker.runDue()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  expect(pipeline.target.calls).toHaveLength(6)
})

test('a slot that is skipped as overlap or missed is not a failure', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))

  pipeline.clock.advance(HOUR)
  pipeline.target.script = () => ({ kind: 'cancelled' })
  await worker.runDue()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
})

test('a failed manual run counts like any other run', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))
  pipeline.target.script = () => FAIL_FOR_GOOD

  await scheduler.pause(CALLER, schedule.id, { reason: 'a look' })
  await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'a look',
    consecutiveFailures: 3,
  })
})

test('the pause is in the history and in an event, and its reason differs from that of a pause by hand', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  const byHand = await pipeline.create({ name: 'by hand' })
  await scheduler.pause(CALLER, byHand.id, { reason: 'consecutive failures' })
  const emitted: unknown[] = []
  worker.events.on('schedule.paused', (event) => emitted.push(event))

  await run(pipeline, worker, times(3, FAIL_FOR_GOOD))

  const reason = 'auto:consecutive_failures'
  expect((await scheduler.history(CALLER, schedule.id)).toReversed()).toMatchObject([
    { change: 'created', actor: 'user:alice' },
    {
      change: 'paused',
      actor: 'system:carillon',
      reason,
      nextSlotAt: null,
      changedAt: pipeline.clock.instant - MINUTE,
    },
  ])
  expect(emitted).toMatchObject([{ scheduleId: schedule.id, actor: 'system:carillon', reason }])
  expect(await scheduler.get(CALLER, byHand.id)).toMatchObject({
    pausedReason: 'consecutive failures',
    pausedBy: 'user:alice',
  })
})

test('a pause by hand cannot have the reason of an auto-pause', async () => {
  const { schedule, scheduler } = await setup()

  const paused = scheduler.pause(CALLER, schedule.id, { reason: 'auto:consecutive_failures' })

  await expect(paused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'reason' }] })
})

test('a slot that is due when the last failure is settled does not run, and gets its line (I6)', async () => {
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
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 failed',
    '09:02 failed',
    '09:03 failed',
    '09:04 skipped paused',
  ])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
  expect((await pipeline.scheduler.history(CALLER, schedule.id))[0]).toMatchObject({
    change: 'paused',
    actor: 'system:carillon',
    reason: 'auto:consecutive_failures',
  })
})

test('every slot that is due when the last failure is settled gets its line before the pause (I6)', async () => {
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
  await worker.runDue()

  const page = await pipeline.scheduler.listRuns(CALLER, schedule.id, { limit: 200 })
  expect(page[0]?.scheduledFor).toBe(pipeline.clock.instant)
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.runs': 3 + 1100 })
  expect(new Set(page.map(({ state, reason }) => `${state} ${reason}`))).toEqual(new Set(['skipped paused']))
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('a run that waits for its turn when the schedule pauses itself is skipped and not counted, as after a pause by hand (I6)', async () => {
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
  await worker.startDue()

  expect((await pipeline.lines(schedule)).slice(-2)).toEqual(['09:03 failed', '09:04 skipped paused'])
  expect(await listWaits(pipeline)).toEqual([])
  expect(pipeline.target.calls).toHaveLength(3)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ ...AUTO, runCount: 3, failureCount: 3 })
})

test('a resume resets the count and removes the reason', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  await run(pipeline, worker, times(3, FAIL_FOR_GOOD))

  const resumed = await scheduler.resume(CALLER, schedule.id)
  expect(resumed).toMatchObject({ state: 'active', consecutiveFailures: 0, pausedReason: null, failureCount: 3 })
  pipeline.clock.advance(MINUTE)
  await run(pipeline, worker, times(2, FAIL_FOR_GOOD))

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
})

test('lowering the threshold below the count pauses the schedule at its next slot, which is skipped as paused (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(10)
  await run(pipeline, worker, times(4, FAIL_FOR_GOOD))

  await scheduler.edit(CALLER, schedule.id, { policy: { autoPauseThreshold: 3 } }, { revision: 1 })
  await worker.runDue()

  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:05 skipped paused')
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
})

test('failures of one schedule do not pause another schedule', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup(3)
  const healthy = await pipeline.create({ name: 'healthy', policy: { autoPauseThreshold: 3 } })

  for (let slot = 0; slot < 4; slot += 1) {
    pipeline.target.script = ({ scheduleId }) => (scheduleId === schedule.id ? FAIL_FOR_GOOD : SUCCEEDED)
    await worker.runDue()
    pipeline.clock.advance(MINUTE)
  }

  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject(AUTO)
  expect(await scheduler.get(CALLER, healthy.id)).toMatchObject({ state: 'active', consecutiveFailures: 0 })
})
