import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const BOB = { ...CALLER, subject: 'user:bob' }

test('a cancel fires the signal of a running call; the run ends as cancelled and is not counted as a failure', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)

  const requested = await pipeline.scheduler.cancel(BOB, running?.id ?? '')
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled

  expect(requested).toMatchObject({ state: 'running', cancelRequestedAt: pipeline.clock.instant })
  expect(await pipeline.scheduler.getRun(CALLER, running?.id ?? '')).toMatchObject({
    state: 'cancelled',
    reason: null,
    completedAt: pipeline.clock.instant,
    attempts: [{ attempt: 1, outcome: 'cancelled' }],
  })
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', failureCount: 0 })
})

test('a cancelled run ends even if the target ignores its signal', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, SUCCEEDED)
  pipeline.target.script = () => new Promise(() => undefined)
  await pipeline.pass(MINUTE, worker)
  await worker.startDue()
  const running = (await pipeline.ledger(schedule)).at(-1)

  await pipeline.scheduler.cancel(CALLER, running?.id ?? '')
  await worker.heartbeat.runOnce()
  await worker.loop.whenIdle()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 cancelled'])
})

test('a run that fails before its worker sees the request to cancel is not retried', async () => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)

  await pipeline.scheduler.cancel(CALLER, running?.id ?? '')
  await answer(0, FAIL)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled'])
  expect(await listWaits(pipeline)).toEqual([])
})

test('a run that waits for its retry ends as soon as it is cancelled, and no worker takes it later', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, FAIL)
  const [retrying] = await pipeline.ledger(schedule)

  const cancelled = await pipeline.scheduler.cancel(CALLER, retrying?.id ?? '')
  await pipeline.pass(MINUTE / 2, worker)
  await worker.startDue()

  expect(cancelled).toMatchObject({
    state: 'cancelled',
    attemptCount: 1,
    completedAt: retrying?.begunAt,
    retryAt: null,
  })
  expect(await listWaits(pipeline)).toEqual([])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a manual run that is cancelled before it starts never runs and is not counted', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)

  await pipeline.scheduler.cancel(CALLER, manual.id)
  await worker.runDue()

  expect(await pipeline.scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'cancelled', attempts: [] })
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 0, failureCount: 0 })
  expect(pipeline.target.calls).toEqual([])
})

test('a cancel of a run that lost its worker frees the run that waits for its turn behind it', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying', '09:02 pending'])
  const [lost] = await pipeline.ledger(schedule)

  await pipeline.scheduler.cancel(CALLER, lost?.id ?? '')
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect(pipeline.target.calls).toHaveLength(2)
})

test('a run that lost its worker keeps its turn before the run that waits behind it', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'queue' })
  await nextSlot()
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE / 2, other)

  await other.rescuer.runOnce()
  await other.rescuer.runOnce()
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  expect(pipeline.target.calls.map(({ attempt }) => attempt)).toEqual([1, 2])
})

test.each([
  { state: 'succeeded', outcome: SUCCEEDED },
  { state: 'failed', outcome: FAIL_FOR_GOOD },
  { state: 'cancelled', outcome: { kind: 'cancelled' } as const },
])('a run that has $state cannot be cancelled', async ({ state, outcome }) => {
  const { pipeline, schedule, answer } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await answer(0, outcome)
  const [ended] = await pipeline.ledger(schedule)

  const cancelled = pipeline.scheduler.cancel(CALLER, ended?.id ?? '')

  await expect(cancelled).rejects.toMatchObject({ code: 'state_conflict' })
  expect(await pipeline.ledger(schedule)).toEqual([ended])
  expect(ended?.state).toBe(state)
})

test('neither a skipped slot nor a run that does not exist can be cancelled', async () => {
  const { pipeline, schedule, nextSlot } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  await nextSlot()
  const skipped = (await pipeline.ledger(schedule)).at(-1)
  const { scheduler } = pipeline

  await expect(scheduler.cancel(CALLER, skipped?.id ?? '')).rejects.toMatchObject({ code: 'state_conflict' })
  await expect(scheduler.cancel(CALLER, schedule.id)).rejects.toMatchObject({ code: 'run_not_found' })
  await expect(scheduler.cancel(CALLER, 'nonsense')).rejects.toMatchObject({ code: 'run_not_found' })
})

test('a second request to cancel does not change the instant of the first', async () => {
  const { pipeline, schedule } = await holdRun(await pipelineAt(START), { overlap: 'forbid' })
  const [running] = await pipeline.ledger(schedule)
  const firstRequestAt = pipeline.clock.instant

  await pipeline.scheduler.cancel(BOB, running?.id ?? '')
  pipeline.clock.advance(1000)
  const again = await pipeline.scheduler.cancel(CALLER, running?.id ?? '')

  expect(again).toMatchObject({ state: 'running', cancelRequestedAt: firstRequestAt })
})
