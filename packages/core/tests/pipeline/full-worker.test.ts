import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from '../pipeline.ts'
import { held, ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }

/** A worker with room for one run, which lasts until the test answers it, and a manual run that waits. */
async function fill(pipeline: Pipeline) {
  const { clock, scheduler, target } = pipeline
  const full = pipeline.worker('full', 1)
  const hold = held()
  target.script = hold.script
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const waiting = await pipeline.create({ cadence: NEVER })
  clock.advance(MINUTE)
  await full.startDue()
  const { id: runId } = await scheduler.runNow(CALLER, waiting.id)
  return { full, hold, runId }
}

test('a run that a full worker cannot take keeps waiting, and an idle worker takes it at once', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { scheduler, target } = pipeline
  const { full, hold, runId } = await fill(pipeline)

  await full.startDue()
  expect(await scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'pending', waitsFor: 'worker' })
  target.script = () => SUCCEEDED
  await pipeline.worker('idle').runDue()

  expect(await scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
  hold.answer(SUCCEEDED)
  await full.runDue()
  expect(target.calls).toHaveLength(2)
  expect(await listWaits(pipeline)).toEqual([])
})

test('a run that is cancelled while the only worker is full is not taken once there is room', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { scheduler, target } = pipeline
  const { full, hold, runId } = await fill(pipeline)
  await full.startDue()

  await scheduler.cancel(CALLER, runId)
  hold.answer(SUCCEEDED)
  await full.loop.whenIdle()
  await full.runDue()

  expect(await scheduler.getRun(CALLER, runId)).toMatchObject({ state: 'cancelled', attemptCount: 0 })
  expect(target.calls).toHaveLength(1)
})

test('an idle worker takes the runs that a full worker on the same database cannot take', async () => {
  await using database = await createDatabase()
  const count = 20
  const hold = held()
  const [busyTarget, idleTarget] = [new ScriptedTarget(), new ScriptedTarget()]
  busyTarget.script = hold.script
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([['test', busyTarget]]) })
  const runNow = async (): Promise<unknown> =>
    scheduler.runNow(CALLER, (await scheduler.create(CALLER, { ...EVERY_MINUTE, cadence: NEVER })).id)
  await using full = new Worker({ databaseUrl: database.url, targets: [busyTarget], concurrency: 1, name: 'full' })
  await full.start()
  await runNow()
  await busyTarget.whenCalled(1)
  // Only the full worker is notified of these runs.
  for (let runs = 0; runs < count; runs += 1) await runNow()

  await using idle = new Worker({ databaseUrl: database.url, targets: [idleTarget], name: 'idle' })
  await idle.start()
  await idleTarget.whenCalled(count)

  expect(busyTarget.calls).toHaveLength(1)
  hold.answer(SUCCEEDED)
})

test.each([
  { claimed: 3, fullMsAgo: 0, what: 'at least half of its room counts as full' },
  { claimed: 1, fullMsAgo: null, what: 'less than half of its room does not count as full' },
])('a worker that claims $what', async ({ claimed, fullMsAgo }) => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  for (let schedule = 0; schedule < claimed; schedule += 1) await pipeline.create()
  const worker = pipeline.worker('worker', 5)
  pipeline.clock.advance(MINUTE)
  await worker.heartbeat.runOnce()

  expect(await worker.loop.runOnce()).toMatchObject({ begun: claimed })
  await worker.loop.whenIdle()

  expect(worker.loop.fullMsAgo).toBe(fullMsAgo)
})
