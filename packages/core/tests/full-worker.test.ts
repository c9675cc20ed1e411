import { expect, test } from 'vitest'

import { Scheduler } from '../src/facade/scheduler.ts'
import { Worker } from '../src/facade/worker.ts'
import { createDb } from '../src/store/database.ts'
import { createDatabase } from './database.ts'
import { emptiedPipelines, jobKeys } from './emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from './pipeline.ts'
import { held, ScriptedTarget, SUCCEEDED } from './scripted-target.ts'

const pipelineAt = emptiedPipelines()
const FULL_PAUSE_MS = 1000
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }

/** Resolves once a job was given back: nobody holds it any more. */
async function whenGivenBack({ database }: Pipeline): Promise<void> {
  for (;;) {
    const { rowCount } = await database.pool.query(
      'select from carillon_jobs._private_jobs where key is not null and locked_at is null',
    )
    if (rowCount === 1) return
  }
}

/** Resolves once the engine has handed a job out. */
async function whenLocked({ database }: Pipeline): Promise<void> {
  for (;;) {
    const { rowCount } = await database.pool.query(
      'select from carillon_jobs._private_jobs where locked_at is not null',
    )
    if (rowCount === 1) return
  }
}

test('a job that finds a worker full is given back at once, and an idle worker does it without time passing', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, target } = pipeline
  const [full, idle] = [pipeline.worker('full', 1), pipeline.worker('idle')]
  const hold = held()
  target.script = hold.script
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const waiting = await pipeline.create({ cadence: NEVER })
  clock.advance(MINUTE)
  await full.begin()
  const run = await scheduler.runNow(CALLER, waiting.id)

  const asked = full.beginJobs()
  await whenLocked(pipeline)
  await whenGivenBack(pipeline)
  target.script = () => SUCCEEDED
  expect(await idle.doJobs()).toBe(1)

  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({ state: 'succeeded', attemptCount: 1 })
  hold.answer(SUCCEEDED)
  expect(await asked).toBe(1)
  await full.keeper.whenIdle()
  expect(await jobKeys(pipeline)).toEqual([])
})

test('a job whose run waits no longer is not given back', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, scheduler, target } = pipeline
  const full = pipeline.worker('full', 1)
  const hold = held()
  target.script = hold.script
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const waiting = await pipeline.create({ cadence: NEVER })
  clock.advance(MINUTE)
  await full.begin()
  const run = await scheduler.runNow(CALLER, waiting.id)
  await scheduler.cancel(CALLER, run.id)

  const asked = full.keeper.attempt(run)
  hold.answer(SUCCEEDED)
  await full.keeper.whenIdle()
  clock.advance(FULL_PAUSE_MS)
  await asked

  expect(await jobKeys(pipeline)).toEqual([])
  expect(target.calls).toHaveLength(1)
})

test('a job is not given back by a worker that has only set its room aside to look at the agenda', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { scheduler } = pipeline
  const worker = pipeline.worker('small', 1)
  const run = await scheduler.runNow(CALLER, (await pipeline.create({ cadence: NEVER })).id)
  await worker.heartbeat.runOnce()

  await Promise.all([worker.keeper.runOnce(), worker.keeper.attempt(run)])
  await worker.keeper.whenIdle()

  expect(await scheduler.getRun(CALLER, run.id)).toMatchObject({ state: 'succeeded' })
})

test('of two workers on one engine, the idle one does what the full one cannot', async () => {
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
  // The full one alone hears of them, and has locked as many as it handles at a time.
  for (let runs = 0; runs < count; runs += 1) await runNow()

  await using idle = new Worker({ databaseUrl: database.url, targets: [idleTarget], name: 'idle' })
  await idle.start()
  await idleTarget.whenCalled(count)

  expect(busyTarget.calls).toHaveLength(1)
  hold.answer(SUCCEEDED)
})
