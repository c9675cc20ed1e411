import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { beginSlotsAs, listWaits, takeAs } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const SLOT_1 = Date.parse('2026-03-02T09:01:00Z')

/** A schedule whose run of 09:01 has failed once and waits for its retry, for longer than a minute. */
async function setup(policy: object) {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const retry = { maxAttempts: 3, baseSeconds: 600, capSeconds: 600 }
  const schedule = await pipeline.create({ policy: { retry, ...policy } })
  pipeline.target.script = ({ attempt, scheduledFor }) => (scheduledFor === SLOT_1 && attempt === 1 ? FAIL : SUCCEEDED)
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  expect(await listWaits(pipeline)).toMatchObject([{ scheduleId: schedule.id, slot: SLOT_1, waitsFor: 'retry' }])
  return { pipeline, worker, schedule, scheduler: pipeline.scheduler }
}

test.each(['forbid', 'queue', 'replace'] as const)(
  'under %s a run that waits for its retry fails as superseded when the next slot begins, and is counted',
  async (overlap) => {
    const { pipeline, worker, schedule, scheduler } = await setup({ overlap })
    pipeline.target.script = () => FAIL

    pipeline.clock.advance(MINUTE)
    await worker.runDue()

    expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:02 retrying'])
    expect(await listWaits(pipeline)).toMatchObject([{ slot: SLOT_1 + MINUTE, waitsFor: 'retry' }])
    expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1, consecutiveFailures: 1 })
  },
)

test('a superseded run keeps its attempts and its last error, and is not taken again', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ overlap: 'forbid' })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  const [superseded] = await pipeline.ledger(schedule)

  pipeline.clock.advance(10 * MINUTE)
  await worker.heartbeat.runOnce()
  expect(await takeAs(pipeline, worker)).toEqual([])

  expect(await scheduler.getRun(CALLER, superseded?.id ?? '')).toMatchObject({
    state: 'failed',
    reason: 'superseded',
    attemptCount: 1,
    retryAt: null,
    completedAt: SLOT_1 + MINUTE,
    error: { code: 'test' },
    attempts: [{ attempt: 1, outcome: 'failed' }],
  })
  expect(pipeline.target.calls.map(({ scheduledFor }) => scheduledFor)).toEqual([SLOT_1, SLOT_1 + MINUTE])
})

test('under allow a run is still retried while later slots run', async () => {
  const { pipeline, worker, schedule } = await setup({ overlap: 'allow' })

  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying', '09:02 succeeded'])
  pipeline.clock.advance(9 * MINUTE)
  await worker.runDue()

  expect((await pipeline.lines(schedule)).slice(0, 2)).toEqual(['09:01 succeeded', '09:02 succeeded'])
})

test('a skipped slot does not supersede a run that waits for its retry', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ overlap: 'forbid' })
  for (let slot = 1; slot <= 10; slot += 1) await scheduler.skip(CALLER, schedule.id, SLOT_1 + slot * MINUTE)

  for (let slot = 1; slot <= 10; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }
  await worker.runDue()

  expect((await pipeline.lines(schedule)).slice(0, 2)).toEqual(['09:01 succeeded', '09:02 skipped excluded'])
})

test('a manual run supersedes a run that waits for its retry', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup({ overlap: 'forbid' })
  pipeline.clock.advance(1000)

  const manual = await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:01 succeeded'])
  expect(await scheduler.getRun(CALLER, manual.id)).toMatchObject({ state: 'succeeded', trigger: 'manual' })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ failureCount: 1 })
})

test('a run that was handed back untried and then superseded is skipped, and not counted as a failure', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ policy: { overlap: 'replace' } })
  const worker = pipeline.worker()
  target.script = held().script
  clock.advance(MINUTE)
  await worker.startDue()
  const drained = worker.loop.drain(0)
  clock.advance(1)
  await drained
  await worker.heartbeat.leave()

  await scheduler.runNow(CALLER, schedule.id)

  const [run] = await pipeline.ledger(schedule)
  expect(run).toMatchObject({ state: 'skipped', reason: 'superseded', attemptCount: 0, startedAt: null })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount: 1, failureCount: 0 })
})

test.each([
  { overlap: 'forbid', next: 'skipped overlap', runCount: 1 },
  { overlap: 'queue', next: 'pending', runCount: 2 },
] as const)('under $overlap a run that was handed back untried goes before the next slot', async (expected) => {
  const { overlap, next, runCount } = expected
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target, scheduler } = pipeline
  const schedule = await pipeline.create({ policy: { overlap } })
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  target.script = held().script
  clock.advance(MINUTE)
  await worker.startDue()
  const drained = worker.loop.drain(0)
  clock.advance(1)
  await drained

  await pipeline.pass(MINUTE, other)
  await beginSlotsAs(pipeline, other)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 pending', `09:02 ${next}`])
  expect(await listWaits(pipeline)).toMatchObject([
    { slot: SLOT_1, waitsFor: 'worker' },
    ...(overlap === 'queue' ? [{ waitsFor: 'turn' }] : []),
  ])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ runCount, failureCount: 0 })
})
