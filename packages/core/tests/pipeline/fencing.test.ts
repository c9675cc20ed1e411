import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { transact } from '../../src/db/transact.ts'
import type { EventMap } from '../../src/kernel/events.ts'
import type { RunFence } from '../../src/ledger/held-run.ts'
import { settleBatch } from '../../src/pipeline/settle.ts'
import { type Ending, settlementOf } from '../../src/pipeline/settlement.ts'
import { claimDue } from '../../src/pipeline/store/claim.ts'
import type { SettledRun } from '../../src/pipeline/store/settle.ts'
import { takeDue } from '../../src/pipeline/store/take.ts'
import type { Outcome } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { readLedger } from '../ledger-rows.ts'
import { CALLER, HEARTBEAT_MS, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FENCE, NO_HOOKS } from '../run-fence.ts'
import { FAIL, FAIL_FOR_GOOD, held, SUCCEEDED } from '../scripted-target.ts'
import { takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const LEASE_MS = 3 * HEARTBEAT_MS
const RETRY = { maxAttempts: 3, baseSeconds: 10, capSeconds: 100 }

function fencedBy(worker: TestWorker): EventMap['attempt.fenced'][] {
  const fenced: EventMap['attempt.fenced'][] = []
  worker.events.on('attempt.fenced', (event) => fenced.push(event))
  return fenced
}

/** The fence with which a worker holds the latest run of a schedule, with changes of the test. */
async function fenceOf(
  pipeline: Pipeline,
  schedule: { id: string },
  changes: Partial<RunFence> = {},
): Promise<RunFence> {
  const { rows } = await pipeline.database.pool.query<{
    id: string
    scheduled_for: Date
    worker_id: string | null
    token: number
  }>(
    'select id, scheduled_for, worker_id, token from carillon.runs where schedule_id = $1 order by scheduled_for desc limit 1',
    [schedule.id],
  )
  const [row] = rows
  if (row === undefined) throw new Error('expected a run')
  return {
    ...FENCE,
    runId: row.id,
    scheduleId: schedule.id,
    scheduledFor: row.scheduled_for.getTime(),
    workerId: row.worker_id ?? randomUUID(),
    token: row.token,
    attempt: row.token,
    ...changes,
  }
}

async function settle(pipeline: Pipeline, run: RunFence, ending: Ending): Promise<readonly SettledRun[]> {
  const { workerDb: db, clock } = pipeline
  const { runs } = await settleBatch({ db, clock, hooks: NO_HOOKS }, [settlementOf(run, ending, { retry: RETRY })])
  return runs
}

test('a worker that was suspended until its lease expired changes nothing when it continues (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, database } = pipeline
  const [stopped, other] = [pipeline.worker('stopped'), pipeline.worker('other')]
  const fenced = fencedBy(stopped)
  const first = held()
  target.script = first.script
  const schedule = await pipeline.create()
  clock.advance(MINUTE / 2)
  await stopped.startDue()
  await target.whenCalled(1)
  stopped.process.stop()

  clock.advance(LEASE_MS)
  target.script = () => SUCCEEDED
  expect(await other.rescuer.runOnce()).toEqual({ rescued: 1, removed: 1 })
  await other.runDue()
  const before = await readLedger(database.pool)
  first.answer(FAIL_FOR_GOOD)
  await stopped.loop.whenIdle()

  expect(await readLedger(database.pool)).toEqual(before)
  expect(fenced).toEqual([
    { runId: target.calls[0]?.runId, scheduleId: schedule.id, scheduledFor: clock.instant - LEASE_MS },
  ])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test.each<[string, Ending]>([
  ['a success', SUCCEEDED],
  ['a failure to retry', FAIL],
  ['a failure for good', FAIL_FOR_GOOD],
  ['a cancellation', { kind: 'cancelled' }],
  ['a hand-back', { kind: 'handed_back' }],
  ['a loss', { kind: 'lost' }],
])('%s is written only with the worker id and the token of the run’s holder (I12)', async (_name, ending) => {
  const pipeline = await pipelineAt('2026-03-02T09:01:00Z')
  const { clock, target, database } = pipeline
  target.script = held().script
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  clock.advance(MINUTE)
  await worker.startDue()
  const before = await readLedger(database.pool)

  for (const changes of [{ workerId: randomUUID() }, { token: 0 }, { token: 2 }]) {
    expect(await settle(pipeline, await fenceOf(pipeline, schedule, changes), ending)).toEqual([])
  }
  expect(await readLedger(database.pool)).toEqual(before)

  expect(await settle(pipeline, await fenceOf(pipeline, schedule), ending)).toHaveLength(1)
  expect(await readLedger(database.pool)).not.toEqual(before)
})

test('a worker that takes the same run again cannot settle its first attempt, because the token differs (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:01:00Z')
  const { clock, target } = pipeline
  const worker = pipeline.worker()
  const fenced = fencedBy(worker)
  const [first, second] = [held(), held()]
  target.script = first.script
  const schedule = await pipeline.create()
  clock.advance(MINUTE)
  await worker.startDue()
  await settle(pipeline, await fenceOf(pipeline, schedule), { kind: 'handed_back' })

  target.script = second.script
  await worker.startDue()
  await target.whenCalled(2)
  expect(await fenceOf(pipeline, schedule)).toMatchObject({ workerId: worker.lease.workerId, token: 2 })
  expect(worker.loop.inFlight).toBe(2)
  const whenFenced = new Promise<void>((resolve) => worker.events.on('attempt.fenced', () => resolve()))
  first.answer(FAIL_FOR_GOOD)
  await whenFenced
  expect(await pipeline.lines(schedule)).toEqual(['09:02 running'])

  second.answer(SUCCEEDED)
  await worker.loop.whenIdle()
  expect(await pipeline.lines(schedule)).toEqual(['09:02 succeeded'])
  expect(fenced).toHaveLength(1)
  expect(target.calls.map(({ attempt }) => attempt)).toEqual([1, 1])
})

test('a cancel reaches a run that one worker took twice after the first of the two calls has ended (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:01:00Z')
  const { clock, target, scheduler } = pipeline
  const worker = pipeline.worker()
  const [first, second] = [held(), held()]
  target.script = first.script
  const schedule = await pipeline.create()
  clock.advance(MINUTE)
  await worker.startDue()
  await settle(pipeline, await fenceOf(pipeline, schedule), { kind: 'handed_back' })
  target.script = second.script
  await worker.startDue()
  await target.whenCalled(2)
  const whenFenced = new Promise<void>((resolve) => worker.events.on('attempt.fenced', () => resolve()))
  first.answer(SUCCEEDED)
  await whenFenced

  await scheduler.cancel(CALLER, target.calls[0]?.runId ?? '')
  await worker.heartbeat.runOnce()
  await worker.loop.whenIdle()

  expect(await pipeline.lines(schedule)).toEqual(['09:02 cancelled'])
})

test('a worker without a lease claims nothing and takes nothing (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, db } = pipeline
  target.script = () => FAIL
  const worker = pipeline.worker()
  const [retrying, due] = [await pipeline.create(), await pipeline.create({ cadence: cron('3 9 * * *') })]
  clock.advance(MINUTE)
  await worker.runDue()
  expect(await pipeline.lines(retrying)).toEqual(['09:01 retrying'])
  const lost = worker.lease.workerId ?? ''
  const lane = await laneOf(pipeline)
  clock.advance(2 * MINUTE)

  expect(worker.lease.workerId).toBeUndefined()
  expect(await worker.loop.runOnce()).toMatchObject({ begun: 0, skipped: 0, taken: 0 })
  for (const workerId of [lost, randomUUID()]) {
    const claimInput = { lanes: [{ lane, after: undefined }], perLane: 10, workerId, now: clock.databaseNow() }
    const claim = await transact(db, clock, (tx) => claimDue(tx, claimInput))
    expect(claim.schedules).toEqual([])
    expect(await takeDue(db, claimInput)).toEqual({ runs: [], last: new Map() })
  }
  expect(await pipeline.lines(due)).toEqual([])

  await worker.heartbeat.runOnce()
  expect(await takeAs(pipeline, worker)).toMatchObject([{ scheduleId: retrying.id }])
  await worker.runDue()
  expect(await pipeline.lines(due)).toEqual(['09:03 retrying'])
})

test('a heartbeat after the lease expired takes a new worker id and aborts all attempts without a write (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:01:00Z')
  const { clock, target, database } = pipeline
  const worker = pipeline.worker()
  const lost: string[] = []
  worker.events.on('lease.lost', ({ workerId }) => lost.push(workerId))
  const reasons: unknown[] = []
  target.script = (_context, signal) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason)
        resolve(SUCCEEDED)
      })
    })
  await pipeline.create()
  clock.advance(MINUTE)
  await worker.startDue()
  const before = await readLedger(database.pool)
  const held = worker.lease.workerId
  clock.advance(LEASE_MS)

  expect(await worker.heartbeat.runOnce()).toEqual({ extended: 0 })
  await worker.loop.whenIdle()

  expect(lost).toEqual([held])
  expect(reasons).toEqual(['lease_lost'])
  expect(worker.lease.workerId).not.toBe(held)
  expect(await readLedger(database.pool)).toEqual(before)
})

test('a worker stops trusting its lease before other workers treat it as expired (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:01:00Z')
  const { clock } = pipeline
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  await worker.heartbeat.runOnce()

  clock.advance(LEASE_MS - 1000)
  expect(worker.lease.workerId).toBeUndefined()
  expect(await other.rescuer.runOnce()).toMatchObject({ removed: 0 })
  expect(await worker.heartbeat.runOnce()).toEqual({ extended: 0 })
  expect(worker.lease.workerId).toBeDefined()
})

test('a lease that expires without a heartbeat aborts all attempts without a write (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, database } = pipeline
  const worker = pipeline.worker()
  const signals: AbortSignal[] = []
  target.script = (_context, signal) => {
    signals.push(signal)
    return new Promise(() => undefined)
  }
  await pipeline.create()
  clock.advance(MINUTE)
  await worker.startDue()
  const before = await readLedger(database.pool)

  clock.advance(LEASE_MS - 1001)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  clock.advance(1)
  await worker.loop.whenIdle()

  expect(signals.map(({ reason }) => reason as unknown)).toEqual(['lease_lost'])
  expect(await readLedger(database.pool)).toEqual(before)
})

test('a run that has ended never changes, whatever workers and callers try (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, scheduler, database } = pipeline
  const worker = pipeline.worker()
  const endings = { succeeded: SUCCEEDED, failed: FAIL_FOR_GOOD, cancelled: { kind: 'cancelled' } } as const
  const endedSchedules = new Map<string, { id: string }>()
  for (const [state, outcome] of Object.entries(endings)) {
    endedSchedules.set(
      state,
      await pipeline.create({ name: state, target: { kind: 'test', outcome }, policy: { overlap: 'replace' } }),
    )
  }
  const skipped = await pipeline.create({ name: 'skipped', target: { kind: 'test', outcome: SUCCEEDED } })
  endedSchedules.set('skipped', skipped)
  await scheduler.skip(CALLER, skipped.id, Date.parse('2026-03-02T09:01:00Z'))
  target.script = ({ spec }) => (spec as unknown as { outcome: Outcome }).outcome
  clock.advance(MINUTE / 2)
  await worker.runDue()
  const { runs: before } = await readLedger(database.pool)
  expect(before.map(({ state }) => String(state)).toSorted()).toEqual([...endedSchedules.keys()].toSorted())

  for (const schedule of endedSchedules.values()) {
    const run = await fenceOf(pipeline, schedule, { workerId: worker.lease.workerId ?? '' })
    for (const ending of [SUCCEEDED, FAIL, FAIL_FOR_GOOD, { kind: 'lost' }, { kind: 'handed_back' }] as const) {
      for (const token of [0, 1, 2]) expect(await settle(pipeline, { ...run, token }, ending)).toEqual([])
    }
    await worker.runDue()
    await expect(scheduler.cancel(CALLER, run.runId)).rejects.toMatchObject({ code: 'state_conflict' })
    const { revision } = await scheduler.edit(CALLER, schedule.id, { name: 'edited' }, { revision: 1 })
    await scheduler.runNow(CALLER, schedule.id)
    await scheduler.pause(CALLER, schedule.id, { reason: 'try', revision })
    await scheduler.resume(CALLER, schedule.id)
  }
  clock.advance(LEASE_MS)
  await pipeline.worker('other').rescuer.runOnce()
  clock.advance(MINUTE)
  await worker.runDue()
  await worker.runDue()
  await scheduler.deleteProject(CALLER)

  const { runs: after } = await readLedger(database.pool)
  const ids = new Set(before.map(({ id }) => id))
  expect(after.filter(({ id }) => ids.has(id))).toEqual(before)
  expect(after.length).toBeGreaterThan(before.length)
})

function cron(expression: string): object {
  return { kind: 'cron', expression, timezone: 'UTC' }
}

async function laneOf({ database }: Pipeline): Promise<string> {
  const { rows } = await database.pool.query<{ lane: string }>('select lane from carillon.schedules limit 1')
  return rows[0]?.lane ?? ''
}
