import { expect, test } from 'vitest'

import { decideRetry } from '../../src/policy/retry.ts'
import type { Outcome } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { listWaits, takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const SLOT = Date.parse('2026-03-02T10:00:00Z')
const HOURLY = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }

/** A schedule at the instant of its slot, before its run begins. */
async function setup(retry: object = {}, policy: object = {}) {
  const pipeline = await pipelineAt('2026-03-02T09:30:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: HOURLY, policy: { retry, ...policy } })
  pipeline.clock.advance(30 * MINUTE)
  return { pipeline, worker, schedule, target: pipeline.target, scheduler: pipeline.scheduler }
}

/** The only run of a schedule, with its attempts. */
async function theRun(pipeline: Pipeline, schedule: { readonly id: string }) {
  const [run] = await pipeline.ledger(schedule)
  return pipeline.scheduler.getRun(CALLER, run?.id ?? '')
}

/** Advances the clock to the instant of the retry, and runs it to its end. */
async function retry(pipeline: Pipeline, worker: TestWorker, schedule: { readonly id: string }): Promise<void> {
  const { retryAt } = await theRun(pipeline, schedule)
  pipeline.clock.advance((retryAt ?? Number.NaN) - pipeline.clock.instant)
  await worker.runDue()
}

test('a failed attempt is retried after a backoff that doubles, to the millisecond, until the run succeeds', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup()
  target.script = ({ attempt }) => (attempt < 3 ? FAIL : { kind: 'succeeded', result: { done: true } })

  await worker.runDue()
  const { id: runId, retryAt } = await theRun(pipeline, schedule)
  await retry(pipeline, worker, schedule)
  const { retryAt: secondRetryAt } = await theRun(pipeline, schedule)
  await retry(pipeline, worker, schedule)

  const delay = (attempt: number): number => {
    const decision = decideRetry({
      policy: target.policy.retry,
      attempt,
      outcome: { retryable: true },
      jitterSeed: runId,
    })
    return decision.kind === 'retry' ? decision.delayMs : Number.NaN
  }
  expect([retryAt, secondRetryAt]).toEqual([SLOT + delay(1), SLOT + delay(1) + delay(2)])
  expect(delay(1)).toBeGreaterThan(9000)
  expect(delay(2)).toBeGreaterThan(18_000)
  expect(await theRun(pipeline, schedule)).toMatchObject({
    id: runId,
    state: 'succeeded',
    attemptCount: 3,
    retryAt: null,
    error: null,
    attempts: [
      { attempt: 1, outcome: 'failed', startedAt: SLOT, completedAt: SLOT, error: { code: 'test' }, result: null },
      { attempt: 2, outcome: 'failed', startedAt: retryAt, error: { code: 'test' } },
      { attempt: 3, outcome: 'succeeded', startedAt: secondRetryAt, error: null, result: { done: true } },
    ],
  })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    consecutiveFailures: 0,
    failureCount: 0,
    runCount: 1,
  })
  expect(await listWaits(pipeline)).toEqual([])
})

test('a retry does not start before its instant (I10)', async () => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => FAIL
  await worker.runDue()
  const { retryAt } = await theRun(pipeline, schedule)

  pipeline.clock.advance((retryAt ?? 0) - 1 - SLOT)
  await worker.heartbeat.runOnce()
  expect(await takeAs(pipeline, worker)).toEqual([])
  await worker.runDue()

  expect(target.calls).toHaveLength(1)
  expect(await theRun(pipeline, schedule)).toMatchObject({ state: 'retrying', attemptCount: 1 })
})

test('a run fails for good after its last attempt, and counts as one failure', async () => {
  const { pipeline, worker, schedule, target, scheduler } = await setup({ maxAttempts: 2 })
  target.script = () => FAIL

  await worker.runDue()
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ consecutiveFailures: 0, failureCount: 0 })
  await retry(pipeline, worker, schedule)

  expect(await theRun(pipeline, schedule)).toMatchObject({
    state: 'failed',
    reason: null,
    attemptCount: 2,
    completedAt: pipeline.clock.instant,
    error: { code: 'test', message: 'as the test wants' },
  })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ consecutiveFailures: 1, failureCount: 1 })
  expect(await listWaits(pipeline)).toEqual([])
})

test.each<{ what: string; outcome: Outcome; attempt: string; state: string }>([
  { what: 'fails for good', outcome: FAIL_FOR_GOOD, attempt: 'failed', state: 'failed' },
  {
    what: 'is malformed',
    outcome: { kind: 'malformed', error: { code: 'test', message: 'nonsense' } },
    attempt: 'malformed',
    state: 'failed',
  },
  { what: 'cancels itself', outcome: { kind: 'cancelled' }, attempt: 'cancelled', state: 'cancelled' },
])('an attempt that $what is not retried', async ({ outcome, attempt, state }) => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => outcome

  await worker.runDue()

  expect(await theRun(pipeline, schedule)).toMatchObject({ state, attemptCount: 1, attempts: [{ outcome: attempt }] })
  expect(await listWaits(pipeline)).toEqual([])
})

test.each([
  { what: 'longer than the backoff is used', retryAfterMs: 60_000, waitMs: 60_000 },
  { what: 'longer than the cap is reduced to the cap', retryAfterMs: 3_600_000, waitMs: 100_000 },
])('a Retry-After $what', async ({ retryAfterMs, waitMs }) => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => ({ ...FAIL, retryAfterMs }) as Outcome

  await worker.runDue()

  expect(await theRun(pipeline, schedule)).toMatchObject({ retryAt: SLOT + waitMs })
})

test.each([1, Number.NaN, -5])('a Retry-After of %d ms does not shorten the backoff', async (retryAfterMs) => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => ({ ...FAIL, retryAfterMs }) as Outcome

  await worker.runDue()

  const { retryAt } = await theRun(pipeline, schedule)
  expect(retryAt).toBeGreaterThanOrEqual(SLOT + 9000)
  expect(retryAt).toBeLessThanOrEqual(SLOT + 10_000)
})

test('no backoff is longer than the cap', async () => {
  const { pipeline, worker, schedule, target } = await setup({ maxAttempts: 8, baseSeconds: 10, capSeconds: 25 })
  target.script = () => FAIL

  await worker.runDue()
  const waits: number[] = []
  for (let attempt = 1; attempt < 8; attempt += 1) {
    const { retryAt } = await theRun(pipeline, schedule)
    waits.push((retryAt ?? 0) - pipeline.clock.instant)
    await retry(pipeline, worker, schedule)
  }

  expect(Math.max(...waits)).toBeLessThanOrEqual(25_000)
  expect(Math.min(...waits.slice(2))).toBeGreaterThanOrEqual(22_500)
  expect(await theRun(pipeline, schedule)).toMatchObject({ state: 'failed', attemptCount: 8 })
})

test.each<{ what: string; thrown: unknown; message: string }>([
  { what: 'an error', thrown: new Error('boom'), message: 'boom' },
  { what: 'a string', thrown: 'boom', message: 'boom' },
])('an attempt whose target throws $what has failed and is retried', async ({ thrown, message }) => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => {
    throw thrown
  }

  await worker.runDue()

  expect(await theRun(pipeline, schedule)).toMatchObject({
    state: 'retrying',
    attempts: [{ attempt: 1, outcome: 'failed', error: { code: 'target_threw', message } }],
  })
})

test('a call that hangs ends at its timeout: its signal fires, and its attempt has failed and is retried', async () => {
  const { pipeline, worker, target } = await setup()
  const schedule = await pipeline.create({ target: { kind: 'test', timeoutSeconds: 7 } })
  const signals: AbortSignal[] = []
  target.script = ({ scheduleId }, signal) => {
    if (scheduleId !== schedule.id) return SUCCEEDED
    signals.push(signal)
    return new Promise(() => undefined)
  }
  pipeline.clock.advance(MINUTE)
  await worker.startDue()

  pipeline.clock.advance(6999)
  expect(signals[0]?.aborted).toBe(false)
  pipeline.clock.advance(1)
  await worker.loop.whenIdle()

  const endedAt = SLOT + MINUTE + 7000
  expect(signals[0]?.aborted).toBe(true)
  expect(await theRun(pipeline, schedule)).toMatchObject({
    state: 'retrying',
    attempts: [{ outcome: 'failed', error: { code: 'timeout' }, startedAt: SLOT + MINUTE, completedAt: endedAt }],
  })
  // Only the timer of the lease may be left.
  worker.lease.release()
  expect(pipeline.clock.waiting).toBe(0)
})

test('an attempt whose permission check hangs ends at the timeout without a call, and is retried (I8)', async () => {
  const { pipeline, schedule, target } = await setup()
  const worker = pipeline.worker('worker', 200, { authorization: { isAllowed: () => new Promise(() => undefined) } })
  await worker.heartbeat.runOnce()
  await worker.loop.runOnce()

  await pipeline.pass(30_000, worker)
  await worker.loop.whenIdle()

  expect(target.calls).toEqual([])
  expect(await theRun(pipeline, schedule)).toMatchObject({
    state: 'retrying',
    attempts: [{ outcome: 'failed', error: { code: 'timeout' } }],
  })
})

test('an answered call leaves no timer behind', async () => {
  const { pipeline, worker } = await setup()

  await worker.runDue()

  // Only the timer of the lease may be left.
  worker.lease.release()
  expect(pipeline.clock.waiting).toBe(0)
})

test('a retry waits in the row of its run, and is due when its backoff ends', async () => {
  const { pipeline, worker, schedule, target } = await setup()
  target.script = () => FAIL

  await worker.runDue()

  const { retryAt, waitsFor } = await theRun(pipeline, schedule)
  expect(waitsFor).toBe('retry')
  expect(await listWaits(pipeline)).toEqual([{ scheduleId: schedule.id, slot: SLOT, waitsFor, dueAt: retryAt }])
})

test('a retry that several workers try to take at the same time is made once, and is not taken again (I2, I12)', async () => {
  const { pipeline, worker, schedule, target } = await setup()
  const others = [pipeline.worker('second'), pipeline.worker('third')]
  target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  await worker.runDue()
  const { retryAt } = await theRun(pipeline, schedule)
  pipeline.clock.advance((retryAt ?? Number.NaN) - pipeline.clock.instant)

  await Promise.all([worker, ...others].map((each) => each.runDue()))
  expect(await takeAs(pipeline, worker)).toEqual([])

  expect(target.calls).toHaveLength(2)
  expect(await theRun(pipeline, schedule)).toMatchObject({ state: 'succeeded', attemptCount: 2 })
})
