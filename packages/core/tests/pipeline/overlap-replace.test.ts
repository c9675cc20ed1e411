import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { holdRun } from '../held-run.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { FAIL, SUCCEEDED, type Script } from '../scripted-target.ts'
import { listWaits, takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const REPLACE = { overlap: 'replace' } as const

test('replace asks the running one to stop and starts the next once it has: never two at once', async () => {
  const { pipeline, worker, schedule, nextSlot } = await holdRun(await pipelineAt(START), REPLACE)

  await nextSlot()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  expect(await takeAs(pipeline, worker)).toEqual([])
  await worker.heartbeat.runOnce()
  await worker.loop.whenIdle()
  await worker.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ consecutiveFailures: 0, failureCount: 0 })
})

test('replace reaches a run on another worker: its heartbeat finds the request', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.begin()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])

  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect([worker.loop.inFlight, other.loop.inFlight]).toEqual([0, 1])
})

test('replace reaches a run on another worker: the notification names it', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.begin()
  const [running] = await pipeline.ledger(schedule)

  const settled = worker.whenSettled()
  other.loop.cancel(running?.id ?? '')
  worker.loop.cancel(running?.id ?? '')
  await settled

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 pending'])
  expect(running?.cancelRequestedAt).toBe(Date.parse('2026-03-02T09:02:00Z'))
})

test('however slowly the replaced one stops, the slots after it replace each other and one is left (I6)', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker, other)
  await other.begin()
  for (let slot = 0; slot < 2; slot += 1) {
    pipeline.clock.advance(4000)
    await other.heartbeat.runOnce()
  }

  await pipeline.pass(MINUTE - 8000, other)
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped superseded', '09:03 pending'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a run that waited for its turn and was displaced by the next slot is not counted as a run', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  worker.process.stop()
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, other)
  await other.begin()

  await pipeline.pass(MINUTE, other)
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped superseded', '09:03 pending'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 2, failureCount: 0 })
})

test('a run that ends well before it sees the request has succeeded, and the next starts', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.begin()

  await answer(0, SUCCEEDED)
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('a run that fails before it sees the request is not tried again: it was asked to stop', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.begin()
  const [replaced] = await pipeline.ledger(schedule)

  await answer(0, FAIL)
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect(await pipeline.scheduler.getRun(CALLER, replaced?.id ?? '')).toMatchObject({
    attemptCount: 1,
    attempts: [{ attempt: 1, outcome: 'failed' }],
  })
})

test('a replaced run whose worker died ends as cancelled, and the next starts', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.begin()

  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()
  await other.begin()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
})

test('over many slots no two runs of a replace schedule are ever under way at once, on two workers', async () => {
  const pipeline = await pipelineAt(START)
  const workers = [pipeline.worker('one'), pipeline.worker('two')]
  const schedule = await pipeline.create({ policy: REPLACE, target: { kind: 'test', timeoutSeconds: 86_400 } })
  let [active, most] = [0, 0]
  const counts = { aborted: 0, settled: 0 }
  for (const { events } of workers) events.on('attempt.settled', () => (counts.settled += 1))
  const stubborn: Script = (_context, signal) => {
    active += 1
    most = Math.max(most, active)
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        active -= 1
        counts.aborted += 1
        resolve({ kind: 'cancelled' })
      })
    })
  }
  pipeline.target.script = stubborn

  for (let slot = 0; slot < 8; slot += 1) {
    await pipeline.pass(MINUTE, ...workers)
    for (const worker of slot % 2 === 0 ? workers : workers.toReversed()) {
      await worker.begin()
      // What the worker was told to cancel is settled, so that the slot that waits for it may begin.
      while (counts.settled < counts.aborted) await setImmediate()
      await worker.begin()
    }
  }

  expect(most).toBe(1)
  expect(pipeline.target.calls.length).toBeGreaterThan(2)
  expect(await pipeline.ledger(schedule)).toHaveLength(8)
})

test('a run-now replaces what is under way as a slot would', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  pipeline.clock.advance(1000)

  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(manual.state).toBe('pending')
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'turn', dueAt: null }])
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await worker.begin()

  expect((await pipeline.ledger(schedule)).map(({ state }) => state)).toEqual(['cancelled', 'running'])
})
