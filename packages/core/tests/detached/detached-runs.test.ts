import { expect, test } from 'vitest'

import { Runs } from '../../src/ledger/completions.ts'
import type { Completion } from '../../src/ports/runs.ts'
import type { Outcome } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { readLedger } from '../ledger-rows.ts'
import { CALLER, HOUR, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'
const ACCEPTED: Outcome = { kind: 'accepted', deadlineMs: HOUR, reference: 'ticket 7' }
const DONE: Completion = { outcome: 'succeeded', result: { pages: 7 } }
const BROKEN = {
  outcome: 'failed',
  error: { code: 'broken', message: 'it broke' },
  retryable: false,
} as const satisfies Completion

interface Detached {
  readonly pipeline: Pipeline
  readonly worker: TestWorker
  readonly runs: Runs
  readonly schedule: { readonly id: string }
  readonly runId: string
}

/** A schedule whose run of 09:01 is detached, or is about to be, as the script says. */
async function detach(policy: object = {}, outcome: Outcome = ACCEPTED): Promise<Detached> {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db } = pipeline
  target.script = () => outcome
  const schedule = await pipeline.create({ policy })
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.runDue()
  const [run] = await pipeline.ledger(schedule)
  return { pipeline, worker, runs: new Runs({ db, clock, by: 'module:test' }), schedule, runId: run?.id ?? '' }
}

async function runOf({ pipeline, runId }: Detached) {
  return pipeline.scheduler.getRun(CALLER, runId)
}

test('a run whose target accepted it is detached: no worker holds it, and it says until when and under which name', async () => {
  const detached = await detach()
  const { worker, pipeline } = detached

  expect(await runOf(detached)).toMatchObject({
    state: 'detached',
    waitsFor: 'completion',
    attemptCount: 1,
    reference: 'ticket 7',
    deadlineAt: pipeline.clock.instant + HOUR,
    completedAt: null,
    attempts: [],
  })
  expect(worker.loop.inFlight).toBe(0)
})

test('a completion ends a detached run: one attempt, its result, and who completed it', async () => {
  const detached = await detach()
  const { runs, runId, worker } = detached

  expect(await runs.complete(null, { runId, attempt: 1 }, DONE)).toEqual({ kind: 'taken' })
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({
    state: 'succeeded',
    attempts: [{ attempt: 1, outcome: 'succeeded', result: { pages: 7 }, completedBy: 'module:test' }],
  })
})

test('a completion that failed for good fails the run, and counts as a failure of its schedule', async () => {
  const detached = await detach()
  const { runs, runId, worker, pipeline, schedule } = detached

  await runs.complete(null, { runId, attempt: 1 }, BROKEN)
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'failed', error: { code: 'broken' }, attemptCount: 1 })
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1, consecutiveFailures: 1 })
})

test('a completion that failed and may be retried is tried again by the policy, under the same run id', async () => {
  const detached = await detach({ overlap: 'queue' })
  const { runs, runId, worker, pipeline } = detached
  const { clock, target } = pipeline
  await runs.complete(null, { runId, attempt: 1 }, { ...BROKEN, outcome: 'failed', retryable: true })
  await worker.runDue()
  expect(await runOf(detached)).toMatchObject({ state: 'retrying', waitsFor: 'retry' })

  target.script = () => SUCCEEDED
  clock.advance(20_000)
  await worker.heartbeat.runOnce()
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'succeeded', attemptCount: 2 })
  expect(new Set(target.calls.map((call) => call.runId)).size).toBe(1)
})

test('a completion that comes before the target answers counts: the run is detached and settled at once', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db } = pipeline
  const { script, answer } = held()
  target.script = script
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  const [run] = await pipeline.ledger(schedule)
  const runs = new Runs({ db, clock, by: 'module:test' })

  expect(await runs.complete(null, { runId: run?.id ?? '', attempt: 1 }, DONE)).toEqual({ kind: 'taken' })
  answer(ACCEPTED)
  await worker.loop.whenIdle()
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test.each<[what: string, outcome: Outcome]>([
  ['failed', { kind: 'failed', error: { code: 'lost_2xx', message: 'the answer was lost' }, retryable: true }],
  ['succeeded with another result', { kind: 'succeeded', result: 'of the answer' }],
  ['malformed', { kind: 'malformed', error: { code: 'odd', message: 'odd' } }],
  ['deferred', { kind: 'deferred', until: 0, why: 'later' }],
])('a completion that was taken decides, although its worker says that the attempt %s', async (_what, outcome) => {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db, database } = pipeline
  const { script, answer } = held()
  target.script = script
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  const [run] = await pipeline.ledger(schedule)

  await new Runs({ db, clock, by: 'module:test' }).complete(null, { runId: run?.id ?? '', attempt: 1 }, DONE)
  answer(outcome)
  await worker.loop.whenIdle()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect((await readLedger(database.pool)).attempts).toMatchObject([{ outcome: 'succeeded', result: { pages: 7 } }])
})

test('a completion that was taken decides, although its worker dies', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db } = pipeline
  target.script = held().script
  const schedule = await pipeline.create()
  const [dead, other] = [pipeline.worker('dead'), pipeline.worker('other')]
  clock.advance(MINUTE)
  await dead.startDue()
  const [run] = await pipeline.ledger(schedule)
  await new Runs({ db, clock, by: 'module:test' }).complete(null, { runId: run?.id ?? '', attempt: 1 }, DONE)

  dead.process.stop()
  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('the same completion again is answered alike, before and after the run is settled; another one is a conflict', async () => {
  const detached = await detach()
  const { runs, runId, worker } = detached
  const attempt = { runId, attempt: 1 }
  await runs.complete(null, attempt, DONE)

  expect(await runs.complete(null, attempt, { outcome: 'succeeded', result: { pages: 7 } })).toEqual({
    kind: 'repeated',
  })
  expect(await runs.complete(null, attempt, BROKEN)).toEqual({ kind: 'conflict', state: 'detached' })
  await worker.runDue()
  expect(await runs.complete(null, attempt, DONE)).toEqual({ kind: 'repeated' })
  expect(await runs.complete(null, attempt, BROKEN)).toEqual({ kind: 'conflict', state: 'succeeded' })
  expect(await runs.complete(null, { runId: '01980000-0000-7000-8000-0000000000ff', attempt: 1 }, DONE)).toEqual({
    kind: 'unknown',
  })
})

test.each<[state: string, outcome: Outcome]>([
  ['succeeded', SUCCEEDED],
  ['retrying', FAIL],
])('a completion of a run that is %s is a conflict, and changes nothing', async (state, outcome) => {
  const detached = await detach({ overlap: 'queue' }, outcome)
  const before = await runOf(detached)

  expect(await detached.runs.complete(null, { runId: detached.runId, attempt: 1 }, DONE)).toEqual({
    kind: 'conflict',
    state,
  })
  expect(await runOf(detached)).toEqual(before)
})

test('a completion that is repeated after the next attempt began ends nothing', async () => {
  const detached = await detach({ overlap: 'queue' })
  const { runs, runId, worker, pipeline } = detached
  const retryable: Completion = { outcome: 'failed', error: { code: 'busy', message: 'busy' }, retryable: true }
  await runs.complete(null, { runId, attempt: 1 }, retryable)
  await worker.runDue()
  pipeline.clock.advance(20_000)
  await worker.heartbeat.runOnce()
  await worker.runDue()
  expect(await runOf(detached)).toMatchObject({ state: 'detached', attemptCount: 2 })

  expect(await runs.complete(null, { runId, attempt: 1 }, retryable)).toEqual({ kind: 'repeated' })
  expect(await runs.complete(null, { runId, attempt: 1 }, DONE)).toEqual({ kind: 'conflict', state: 'detached' })
  await worker.runDue()
  expect(await runOf(detached)).toMatchObject({ state: 'detached', attemptCount: 2 })
  expect(await runs.complete(null, { runId, attempt: 2 }, DONE)).toEqual({ kind: 'taken' })
})

test('a completion of an attempt that ended otherwise ends the attempt under way: the target does the same work', async () => {
  const detached = await detach({ overlap: 'queue' }, { ...ACCEPTED, kind: 'accepted', deadlineMs: 1000 })
  const { runs, runId, worker, pipeline } = detached
  pipeline.target.script = () => ACCEPTED
  await pipeline.pass(20_000, worker)
  await worker.runDue()
  await pipeline.pass(20_000, worker)
  await worker.runDue()
  expect(await runOf(detached)).toMatchObject({
    state: 'detached',
    attemptCount: 2,
    attempts: [{ outcome: 'timed_out', error: { code: 'deadline' } }],
  })

  expect(await runs.complete(null, { runId, attempt: 1 }, DONE)).toEqual({ kind: 'taken' })
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'succeeded', attemptCount: 2 })
})

test('a heartbeat moves the deadline, and a deadline that passes without one ends the attempt as timed out', async () => {
  const detached = await detach({ overlap: 'queue' })
  const { runs, runId, worker, pipeline } = detached
  await pipeline.pass(HOUR - MINUTE, worker)
  expect(await runs.heartbeat(null, { runId }, HOUR)).toBe(true)
  await pipeline.pass(2 * MINUTE, worker)
  await worker.runDue()
  expect(await runOf(detached)).toMatchObject({
    state: 'detached',
    deadlineAt: pipeline.clock.instant + HOUR - 2 * MINUTE,
  })

  await pipeline.pass(HOUR, worker)
  await worker.loop.runOnce()

  const run = await runOf(detached)
  expect(run.attempts).toMatchObject([{ outcome: 'timed_out', error: { code: 'deadline' } }])
  // The next slot waits for its turn, so the run that timed out is not tried again.
  expect(run).toMatchObject({ state: 'failed', reason: 'superseded' })
})

test('a run that was completed or is to be cancelled takes no heartbeat', async () => {
  const completed = await detach()
  await completed.runs.complete(null, { runId: completed.runId, attempt: 1 }, DONE)
  expect(await completed.runs.heartbeat(null, { runId: completed.runId }, HOUR)).toBe(false)
  const cancelled = await detach()
  await cancelled.pipeline.scheduler.cancel(CALLER, cancelled.runId)

  expect(await cancelled.runs.heartbeat(null, { runId: cancelled.runId }, HOUR)).toBe(false)
})

test('cancelling a detached run ends it as cancelled, with its attempt', async () => {
  const detached = await detach()
  const { pipeline, runId, worker } = detached

  expect(await pipeline.scheduler.cancel(CALLER, runId)).toMatchObject({ state: 'detached' })
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'cancelled', attempts: [{ outcome: 'cancelled' }] })
})

test('deleting a schedule cancels its detached run', async () => {
  const detached = await detach()
  const { pipeline, schedule, worker } = detached

  await pipeline.scheduler.delete(CALLER, schedule.id)
  await worker.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'cancelled', attemptCount: 1 })
})

test.each([
  ['forbid', ['09:01 detached', '09:02 skipped overlap']],
  ['queue', ['09:01 detached', '09:02 pending']],
  ['allow', ['09:01 detached', '09:02 detached']],
  ['replace', ['09:01 cancelled', '09:02 detached']],
])('under %s a slot treats a detached run as one that is under way', async (overlap, lines) => {
  const { pipeline, worker, schedule } = await detach({ overlap })

  await pipeline.pass(MINUTE, worker)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(lines)
})

test('the run that waits for its turn starts when the detached run is completed', async () => {
  const { pipeline, worker, schedule, runs, runId } = await detach({ overlap: 'queue' })
  await pipeline.pass(MINUTE, worker)
  await worker.runDue()
  pipeline.target.script = () => SUCCEEDED

  await runs.complete(null, { runId, attempt: 1 }, DONE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
})

test('a detached run outlives the worker that dispatched it: no rescuer takes it for lost', async () => {
  const detached = await detach()
  const { pipeline, worker, runs, runId } = detached
  const other = pipeline.worker('other')
  worker.process.stop()
  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()
  expect(await runOf(detached)).toMatchObject({ state: 'detached' })
  const { rows } = await pipeline.database.pool.query(`select name from carillon.workers order by name`)
  expect(rows).toEqual([{ name: 'other' }])

  await runs.complete(null, { runId, attempt: 1 }, DONE)
  await other.runDue()

  expect(await runOf(detached)).toMatchObject({ state: 'succeeded' })
})

test('a deferred run waits until the instant that its target named, and no attempt is charged', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target } = pipeline
  target.script = ({ scheduledFor }) => ({ kind: 'deferred', until: scheduledFor + 20_000, why: 'the shop is closed' })
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.runDue()
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending', waitsFor: 'deferred', attemptCount: 0 }])

  target.script = () => SUCCEEDED
  await pipeline.pass(10_000, worker)
  await worker.runDue()
  expect(target.calls).toHaveLength(1)
  await pipeline.pass(10_000, worker)
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'succeeded', attemptCount: 1 }])
})
