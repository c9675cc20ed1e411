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

test('replace cancels the running run, and starts the next one only after it has ended', async () => {
  const { pipeline, worker, schedule, nextSlot } = await holdRun(await pipelineAt(START), REPLACE)

  await nextSlot()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  expect(await takeAs(pipeline, worker)).toEqual([])
  await worker.heartbeat.runOnce()
  await worker.loop.whenIdle()
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ consecutiveFailures: 0, failureCount: 0 })
})

test('replace cancels a run on another worker, whose heartbeat finds the request', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.startDue()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])

  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect([worker.loop.inFlight, other.loop.inFlight]).toEqual([0, 1])
})

test('replace cancels a run on another worker, which is notified with the id of the run', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.startDue()
  const [running] = await pipeline.ledger(schedule)

  const settled = worker.whenSettled()
  other.loop.cancel(running?.id ?? '')
  worker.loop.cancel(running?.id ?? '')
  await settled

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 pending'])
  expect(running?.cancelRequestedAt).toBe(Date.parse('2026-03-02T09:02:00Z'))
})

test('while a replaced run takes long to stop, each later slot supersedes the one that waits (I6)', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker, other)
  await other.startDue()
  for (let slot = 0; slot < 2; slot += 1) {
    pipeline.clock.advance(4000)
    await other.heartbeat.runOnce()
  }

  await pipeline.pass(MINUTE - 8000, other)
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped superseded', '09:03 pending'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a run that was superseded while it waited for its turn is not counted as a run', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  worker.process.stop()
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, other)
  await other.startDue()

  await pipeline.pass(MINUTE, other)
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 skipped superseded', '09:03 pending'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 2, failureCount: 0 })
})

test('a run that succeeds before its worker sees the request stays succeeded, and the next run starts', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.startDue()

  await answer(0, SUCCEEDED)
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 running'])
})

test('a run that fails before its worker sees the request is cancelled, not retried', async () => {
  const { pipeline, worker, schedule, answer } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.startDue()
  const [replaced] = await pipeline.ledger(schedule)

  await answer(0, FAIL)
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
  expect(await pipeline.scheduler.getRun(CALLER, replaced?.id ?? '')).toMatchObject({
    attemptCount: 1,
    attempts: [{ attempt: 1, outcome: 'failed' }],
  })
})

test('a replaced run whose worker died ends as cancelled, and the next run starts', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE, worker)
  await other.startDue()

  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()
  await other.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 cancelled', '09:02 running'])
})

test('under replace two workers never run two runs of one schedule at the same time, over many slots', async () => {
  const pipeline = await pipelineAt(START)
  const workers = [pipeline.worker('one'), pipeline.worker('two')]
  const schedule = await pipeline.create({ policy: REPLACE, target: { kind: 'test', timeoutSeconds: 86_400 } })
  let [active, most] = [0, 0]
  const counts = { aborted: 0, settled: 0 }
  for (const { events } of workers) events.on('attempt.settled', () => (counts.settled += 1))
  const untilAborted: Script = (_context, signal) => {
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
  pipeline.target.script = untilAborted

  for (let slot = 0; slot < 8; slot += 1) {
    await pipeline.pass(MINUTE, ...workers)
    for (const worker of slot % 2 === 0 ? workers : workers.toReversed()) {
      await worker.startDue()
      // Waits until cancelled runs are settled, so that the waiting slot can start.
      while (counts.settled < counts.aborted) await setImmediate()
      await worker.startDue()
    }
  }

  expect(most).toBe(1)
  expect(pipeline.target.calls.length).toBeGreaterThan(2)
  expect(await pipeline.ledger(schedule)).toHaveLength(8)
})

test('a manual run replaces the running run like a slot', async () => {
  const { pipeline, worker, schedule } = await holdRun(await pipelineAt(START), REPLACE)
  pipeline.clock.advance(1000)

  const manual = await pipeline.scheduler.runNow(CALLER, schedule.id)
  expect(manual.state).toBe('pending')
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'turn', dueAt: null }])
  const settled = worker.whenSettled()
  await worker.heartbeat.runOnce()
  await settled
  await worker.startDue()

  expect((await pipeline.ledger(schedule)).map(({ state }) => state)).toEqual(['cancelled', 'running'])
})
