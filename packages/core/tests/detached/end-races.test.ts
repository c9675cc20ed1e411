import { expect, test } from 'vitest'

import { transact } from '../../src/db/transact.ts'
import { Runs } from '../../src/ledger/completions.ts'
import { endWaitingRuns } from '../../src/ledger/open-runs.ts'
import { settleBatch } from '../../src/pipeline/settle.ts'
import { settlementOf } from '../../src/pipeline/settlement.ts'
import { findDueDetached } from '../../src/pipeline/store/detached-runs.ts'
import { findOrphanedRuns } from '../../src/pipeline/store/workers.ts'
import { endLanesOf } from '../../src/policy/lane-names.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR, MINUTE } from '../pipeline.ts'
import { NO_HOOKS } from '../run-fence.ts'
import { held } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'
const RETRY = { maxAttempts: 3, baseSeconds: 10, capSeconds: 100 }

async function detached(deadlineMs: number) {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db } = pipeline
  target.script = () => ({ kind: 'accepted', deadlineMs })
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.loop.runOnce().then(() => worker.heartbeat.runOnce())
  await worker.startDue()
  await worker.loop.whenIdle()
  const [run] = await pipeline.ledger(schedule)
  return { pipeline, worker, schedule, runId: run?.id ?? '', runs: new Runs({ db, clock, by: 'module:test' }) }
}

test('a heartbeat that comes after a worker found the deadline passed, and before it holds the lock, keeps the run', async () => {
  const { pipeline, runId, runs } = await detached(1000)
  const { clock, workerDb: db } = pipeline
  clock.advance(2000)
  const now = clock.databaseNow()
  const [due] = await findDueDetached(db, { lanes: endLanesOf(['test']), limit: 10, now })
  if (due === undefined) throw new Error('expected a run whose deadline has passed')
  expect(await runs.heartbeat(null, { runId }, HOUR)).toBe(true)

  const ending = { kind: 'timed_out', isRetried: true } as const
  const settled = await settleBatch({ db, clock, hooks: NO_HOOKS }, [
    settlementOf(due, ending, { retry: RETRY, held: 'detached' }),
  ])

  expect(settled.runs).toEqual([])
  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'detached', attempts: [] })
})

test('I12: an answer that is settled again, because the first commit got none, does not move the deadline back', async () => {
  const { pipeline, runId, runs } = await detached(MINUTE)
  const { clock, workerDb: db } = pipeline
  await runs.heartbeat(null, { runId }, HOUR)
  const before = await pipeline.scheduler.getRun(CALLER, runId)
  const [fence] = await findDueDetached(db, {
    lanes: endLanesOf(['test']),
    limit: 10,
    now: new Date(clock.instant + 2 * HOUR),
  })
  if (fence === undefined) throw new Error('expected a detached run')

  const again = settlementOf(fence, { kind: 'accepted', deadlineMs: 1 }, { retry: RETRY })
  expect((await settleBatch({ db, clock, hooks: NO_HOOKS }, [again])).runs).toEqual([])

  expect(await pipeline.scheduler.getRun(CALLER, runId)).toEqual(before)
})

test('a run that is accepted although a caller asked to cancel it ends as cancelled at once', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target } = pipeline
  const { script, answer } = held()
  target.script = (context, _signal) => script(context, new AbortController().signal)
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  const [run] = await pipeline.ledger(schedule)
  // Its worker does not see the request before the target answers.
  await pipeline.scheduler.cancel(CALLER, run?.id ?? '')
  answer({ kind: 'accepted', deadlineMs: HOUR })
  await worker.loop.whenIdle()
  await worker.loop.runOnce()

  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'cancelled',
    attempts: [{ outcome: 'cancelled' }],
  })
})

test('a run that is accepted although its schedule was deleted ends as cancelled at once, with its attempt', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target } = pipeline
  const { script, answer } = held()
  target.script = script
  const schedule = await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  const [run] = await pipeline.ledger(schedule)
  await pipeline.scheduler.delete(CALLER, schedule.id)
  answer({ kind: 'accepted', deadlineMs: HOUR })
  await worker.loop.whenIdle()
  await worker.loop.runOnce()

  expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({
    state: 'cancelled',
    attempts: [{ attempt: 1, outcome: 'cancelled' }],
  })
})

test('deleting a schedule with a detached run leaves the run to a worker: it ends with an attempt, not without', async () => {
  const { pipeline, schedule, worker, runId } = await detached(HOUR)
  await pipeline.scheduler.delete(CALLER, schedule.id)
  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'detached', attempts: [] })

  await worker.loop.runOnce()

  expect(await pipeline.scheduler.getRun(CALLER, runId)).toMatchObject({
    state: 'cancelled',
    attempts: [{ outcome: 'cancelled' }],
  })
})

test('the statements that end waiting runs and find orphaned runs leave a detached run alone', async () => {
  const { pipeline, worker, runId } = await detached(HOUR)
  const { clock, workerDb: db } = pipeline
  worker.process.stop()
  clock.advance(MINUTE)
  const now = clock.databaseNow()
  const orphans = { workerIds: null, limit: 10, now }

  expect(await findOrphanedRuns(db, { ...orphans, targetKinds: ['test'] })).toEqual([])
  const ended = transact(db, clock, (tx) => endWaitingRuns(tx, { runIds: [runId], end: 'cancelled', now }))
  expect(await ended).toEqual([])
})

test('a rescuer finds the orphaned runs of the kinds that its worker serves, and no others', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, target, workerDb: db } = pipeline
  target.script = held().script
  await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE)
  await worker.startDue()
  worker.process.stop()
  clock.advance(MINUTE)
  const orphans = { workerIds: null, limit: 10, now: clock.databaseNow() }

  expect(await findOrphanedRuns(db, { ...orphans, targetKinds: ['other'] })).toEqual([])
  expect(await findOrphanedRuns(db, { ...orphans, targetKinds: ['test'] })).toHaveLength(1)
})
