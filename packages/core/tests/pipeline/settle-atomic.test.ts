import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()

/** Refuses a change of runs for as long as the work takes. */
async function refusing({ db }: Pipeline, change: string, work: () => Promise<void>): Promise<void> {
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

/** Somebody's settle could not be written. */
function whenSettlerFails({ events }: TestWorker): Promise<unknown> {
  return new Promise((resolve) => {
    const stop = events.on('service.failed', ({ service, error }) => {
      if (service !== 'settle queue') return
      stop()
      resolve(error)
    })
  })
}

test('a retry is settled with its attempt and its instant or not at all (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)

  await refusing(pipeline, 'new.due_at is not null', async () => {
    const failed = whenSettlerFails(worker)
    await worker.begin()
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

test('a run that waits for its turn is freed in the transaction that ends the one before, or that one does not end (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { overlap: 'queue' } })
  const answer = Promise.withResolvers<typeof SUCCEEDED>()
  pipeline.target.script = () => answer.promise
  pipeline.clock.advance(MINUTE / 2)
  await worker.begin()
  await pipeline.scheduler.runNow(CALLER, schedule.id)

  await refusing(pipeline, `old.waits_for = 'turn'`, async () => {
    const failed = whenSettlerFails(worker)
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

test('a final failure is settled with the counters and the pause, or not at all (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { autoPauseThreshold: 3 } })
  pipeline.target.script = () => FAIL_FOR_GOOD
  pipeline.clock.advance(MINUTE / 2)
  await worker.keep()
  pipeline.clock.advance(MINUTE)
  await worker.keep()
  pipeline.clock.advance(MINUTE)
  await sql`alter table carillon.schedule_changes rename to taken_away`.execute(pipeline.db)

  const failed = whenSettlerFails(worker)
  await worker.begin()
  await failed
  await sql`alter table carillon.taken_away rename to schedule_changes`.execute(pipeline.db)
  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:03 running')
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'active', consecutiveFailures: 2 })
  const settled = worker.whenSettled()
  pipeline.clock.advance(250)
  await settled

  expect((await pipeline.lines(schedule)).at(-1)).toBe('09:03 failed')
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', consecutiveFailures: 3 })
})

test('a begin that cannot write its line moves nothing on: the slot is still due (I3)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await sql`alter table carillon.runs rename to taken_away`.execute(pipeline.db)

  await expect(worker.begin()).rejects.toThrow('carillon.runs')
  await sql`alter table carillon.taken_away rename to runs`.execute(pipeline.db)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    nextSlotAt: pipeline.clock.instant,
    runCount: 0,
  })
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test('a begin that fails half-way has not begun: what it superseded still waits, and nothing ran (I3)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  const cadence = { kind: 'interval', every: 'PT1M', startAt: '2026-03-02T09:01:00Z', maxRuns: 2 }
  const retry = { baseSeconds: 600, capSeconds: 600 }
  const schedule = await pipeline.create({ cadence, policy: { retry } })
  pipeline.target.script = () => FAIL
  pipeline.clock.advance(MINUTE / 2)
  await worker.keep()
  pipeline.clock.advance(MINUTE)

  // Its last slot completes it, which is written down last.
  await sql`alter table carillon.schedule_changes rename to taken_away`.execute(pipeline.db)
  await expect(worker.begin()).rejects.toThrow('schedule_changes')
  await sql`alter table carillon.taken_away rename to schedule_changes`.execute(pipeline.db)
  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
  expect(await listWaits(pipeline)).toHaveLength(1)
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'active',
    nextSlotAt: pipeline.clock.instant,
  })
  await worker.keep()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed superseded', '09:02 retrying'])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
})

test('of attempts that are settled together each keeps its own result, and who has none has none (I4)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, target, scheduler } = pipeline
  const schedules = [await pipeline.create(), await pipeline.create(), await pipeline.create()]
  const results = ['{"a": "b"}', null, { b: [1, 'c\\"d'] }]
  target.script = ({ scheduleId }) => ({
    kind: 'succeeded',
    result: results[schedules.findIndex(({ id }) => id === scheduleId)] ?? null,
  })
  clock.advance(MINUTE / 2)

  await pipeline.worker().keep()

  const runs = (await Promise.all(schedules.map((schedule) => pipeline.ledger(schedule)))).flat()
  const kept = await Promise.all(runs.map(({ id }) => scheduler.getRun(CALLER, id)))
  expect(kept.map(({ attempts }) => attempts.map(({ result }) => result))).toEqual(results.map((result) => [result]))
})
