import { expect, test } from 'vitest'

import type { Schedule } from '../../src/ledger/records.ts'
import type { Outcome } from '../../src/ports/target.ts'
import { whileHeld } from '../blocked-statement.ts'
import { MINUTE, Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const OTHERS = 20
const RETRY_PAUSE_MS = 250

interface Herd {
  readonly worker: TestWorker
  readonly held: Schedule
  /** Answers the calls of all attempts at once. */
  readonly answerAll: () => void
}

/** Starts a run of a schedule that the test will lock or break, and runs of other schedules. */
async function beginHerd(pipeline: Pipeline, outcomes: { held: Outcome; others: Outcome }): Promise<Herd> {
  const worker = pipeline.worker()
  const held = await pipeline.create({ name: 'held' })
  for (let others = 0; others < OTHERS; others += 1) await pipeline.create()
  const answer = Promise.withResolvers<void>()
  pipeline.target.script = async ({ scheduleId }) => {
    await answer.promise
    return scheduleId === held.id ? outcomes.held : outcomes.others
  }
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  await pipeline.target.whenCalled(OTHERS + 1)
  return { worker, held, answerAll: answer.resolve }
}

/** Resolves once this many attempts of the other schedules are settled. */
function whenOthersSettled({ worker, held }: Herd, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let settled = 0
  worker.events.on('attempt.settled', ({ scheduleId }) => {
    if (scheduleId !== held.id) settled += 1
    if (settled === count) resolve()
  })
  return promise
}

/** The errors of the services so far. */
function failuresOf({ events }: TestWorker): unknown[] {
  const failures: unknown[] = []
  events.on('service.failed', ({ error }) => failures.push(error))
  return failures
}

test('successes are settled even if another transaction has locked the schedule of a failure (I4)', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const herd = await beginHerd(pipeline, { held: FAIL_FOR_GOOD, others: SUCCEEDED })
  const failures = failuresOf(herd.worker)

  await whileHeld(pipeline, `select from carillon.schedules where id = '${herd.held.id}' for update`, async () => {
    const settled = whenOthersSettled(herd, OTHERS)
    herd.answerAll()
    await settled
    expect(failures).toEqual([])
    expect(await pipeline.lines(herd.held)).toEqual(['09:01 running'])
  })
  await herd.worker.loop.whenIdle()

  expect(await pipeline.lines(herd.held)).toEqual(['09:01 failed'])
})

test.each([
  ['the lock of one schedule is not available', 'lock_not_available'],
  ['the batch is too large', 'program_limit_exceeded'],
])('if %s, one settlement is retried alone, and the others of its batch are written (I4)', async (_why, code) => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const { clock, db } = pipeline
  const herd = await beginHerd(pipeline, { held: FAIL, others: FAIL })
  // Simulates the error for one schedule, without waiting for a real one.
  await sql`
    create function carillon.refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = ${sql.lit(code)}; end $$`.execute(db)
  await sql`
    create trigger refuse before insert on carillon.attempts for each row
    when (new.schedule_id = ${sql.lit(herd.held.id)}::uuid) execute function carillon.refuse()`.execute(db)
  const settled = whenOthersSettled(herd, OTHERS)

  herd.answerAll()
  await letPausesPass(clock, settled)
  expect(await pipeline.lines(herd.held)).toEqual(['09:01 running'])
  expect(await listWaits(pipeline)).toHaveLength(OTHERS)

  await sql`drop function carillon.refuse cascade`.execute(db)
  await letPausesPass(clock, herd.worker.loop.whenIdle())
  expect(await pipeline.lines(herd.held)).toEqual(['09:01 retrying'])
  expect(await listWaits(pipeline)).toHaveLength(OTHERS + 1)
})

/** Advances the clock over one pause of the settle queue after another, until a promise resolves. */
async function letPausesPass(clock: Pipeline['clock'], until: Promise<void>): Promise<void> {
  const turn = (): Promise<'turn'> => new Promise((resolve) => setImmediate(() => resolve('turn')))
  while ((await Promise.race([until, turn()])) === 'turn') {
    // The lease has a timer too. If there is a second one, the settle queue pauses.
    if (clock.waiting > 1) clock.advance(RETRY_PAUSE_MS)
  }
}
