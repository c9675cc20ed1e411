import { expect, test } from 'vitest'

import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()

/** Makes Postgres reject updates of runs that meet a condition, during `work`. */
async function whileRejecting({ db }: Pipeline, change: string, work: () => Promise<void>): Promise<void> {
  await sql`
    create function carillon.refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$`.execute(db)
  await sql`
    create trigger refuse before update on carillon.runs for each row
    when (${sql.raw(change)}) execute function carillon.refuse()`.execute(db)
  try {
    await work()
  } finally {
    await sql`drop function carillon.refuse cascade`.execute(db)
  }
}

/** Resolves once the settle queue of a worker has failed to write. */
function whenSettlingFails({ events }: TestWorker): Promise<unknown> {
  return new Promise((resolve) => {
    const stop = events.on('service.failed', ({ service, error }) => {
      if (service !== 'settle queue') return
      stop()
      resolve(error)
    })
  })
}

test('one transaction writes the attempt and the instant of the retry (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)

  await whileRejecting(pipeline, 'new.due_at is not null', async () => {
    const failed = whenSettlingFails(worker)
    await worker.startDue()
    await failed
    const [run] = await pipeline.ledger(schedule)
    expect(await pipeline.scheduler.getRun(CALLER, run?.id ?? '')).toMatchObject({ state: 'running', attempts: [] })
  })
  const settled = worker.whenSettled()
  pipeline.clock.advance(250)
  await settled

  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
  expect(await listWaits(pipeline)).toHaveLength(1)
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.attempts': 1, 'carillon.runs': 1 })
})

test('one transaction ends a run and frees the run that waits for its turn (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { overlap: 'queue' } })
  const answer = Promise.withResolvers<typeof SUCCEEDED>()
  pipeline.target.script = () => answer.promise
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  await pipeline.scheduler.runNow(CALLER, schedule.id)

  await whileRejecting(pipeline, `old.waits_for = 'turn'`, async () => {
    const failed = whenSettlingFails(worker)
    answer.resolve(SUCCEEDED)
    await failed
    expect((await pipeline.ledger(schedule)).map(({ state }) => state)).toEqual(['pending', 'running'])
  })
  const settled = worker.whenSettled()
  pipeline.clock.advance(250)
  await settled

  expect((await pipeline.ledger(schedule)).map(({ state }) => state)).toEqual(['pending', 'succeeded'])
  expect(await listWaits(pipeline)).toMatchObject([{ waitsFor: 'worker', dueAt: pipeline.clock.instant }])
})

test('one transaction writes a final failure, the counters and the auto-pause (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { autoPauseThreshold: 3 } })
  pipeline.target.script = () => FAIL_FOR_GOOD
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  pipeline.clock.advance(MINUTE)
  await worker.runDue()
  pipeline.clock.advance(MINUTE)
  await sql`alter table carillon.schedule_changes rename to hidden`.execute(pipeline.db)

  const failed = whenSettlingFails(worker)
  await worker.startDue()
  await failed
  await sql`alter table carillon.hidden rename to schedule_changes`.execute(pipeline.db)
  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:03 running')
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  const settled = worker.whenSettled()
  pipeline.clock.advance(250)
  await settled

  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:03 failed')
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', consecutiveFailures: 3 })
})

test('if begin cannot write its line, the slot stays due (I3)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await sql`alter table carillon.runs rename to hidden`.execute(pipeline.db)

  await expect(worker.startDue()).rejects.toThrow('relation "runs" does not exist')
  await sql`alter table carillon.hidden rename to runs`.execute(pipeline.db)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    nextSlotAt: pipeline.clock.instant,
    runCount: 0,
  })
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a begin that fails in the middle is rolled back: the run that it would supersede still waits, and no run starts (I3)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const cadence = { kind: 'interval', every: 'PT1M', startAt: '2026-03-02T09:01:00Z', maxRuns: 2 }
  const retry = { baseSeconds: 600, capSeconds: 600 }
  const schedule = await pipeline.create({ cadence, policy: { retry } })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  pipeline.clock.advance(MINUTE)

  // This slot is the last one and completes the schedule, which begin records at its end.
  await sql`alter table carillon.schedule_changes rename to hidden`.execute(pipeline.db)
  await expect(worker.startDue()).rejects.toThrow('schedule_changes')
  await sql`alter table carillon.hidden rename to schedule_changes`.execute(pipeline.db)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
  expect(await listWaits(pipeline)).toHaveLength(1)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    nextSlotAt: pipeline.clock.instant,
  })
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:02 retrying'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test('each attempt of a batch is stored with its own result, or with none (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, scheduler } = pipeline
  const schedules = [await pipeline.create(), await pipeline.create(), await pipeline.create()]
  const results = ['{"a": "b"}', null, { b: [1, 'c\\"d'] }]
  target.script = ({ scheduleId }) => ({
    kind: 'succeeded',
    result: results[schedules.findIndex(({ id }) => id === scheduleId)] ?? null,
  })
  clock.advance(MINUTE / 2)

  await pipeline.worker().runDue()

  const runs = (await Promise.all(schedules.map((schedule) => pipeline.ledger(schedule)))).flat()
  const kept = await Promise.all(runs.map(({ id }) => scheduler.getRun(CALLER, id)))
  expect(kept.map(({ attempts }) => attempts.map(({ result }) => result))).toEqual(results.map((result) => [result]))
})
