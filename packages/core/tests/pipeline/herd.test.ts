import { describe, expect, test } from 'vitest'

import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { held, SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'

async function herdOf(count: number): Promise<Pipeline> {
  const pipeline = await pipelineAt(START)
  await pipeline.scheduler.createMany(
    CALLER,
    Array.from({ length: count }, () => EVERY_MINUTE),
  )
  pipeline.clock.advance(MINUTE)
  return pipeline
}

/** Manual runs that were requested at the same instant and wait for a worker. */
async function waitingHerdOf(count: number): Promise<Pipeline> {
  const pipeline = await pipelineAt(START)
  const cadence = { kind: 'once', at: '2099-01-01T00:00:00Z' }
  const ids = await pipeline.scheduler.createMany(
    CALLER,
    Array.from({ length: count }, () => ({ ...EVERY_MINUTE, cadence })),
  )
  for (const id of ids) await pipeline.scheduler.runNow(CALLER, id)
  return pipeline
}

test('a worker begins a herd in two batches at a time, and holds no more runs than its concurrency', async () => {
  const pipeline = await herdOf(12)
  const hold = held()
  pipeline.target.script = hold.script
  const worker = pipeline.worker('worker', 7, { batchSize: 4 })
  await worker.heartbeat.runOnce()

  const first = await worker.loop.runOnce()
  const second = await worker.loop.runOnce()
  const third = await worker.loop.runOnce()
  const fourth = await worker.loop.runOnce()

  // First one batch, then two that share the remaining room, then what neither could claim, then none.
  expect([first, second, third, fourth].map(({ begun }) => begun)).toEqual([4, 2, 1, 0])
  expect(worker.loop.inFlight).toBe(7)
  hold.answer(SUCCEEDED)
  await worker.runDue()
})

test('two concurrent batches of one lane write one line per slot (I2, I3)', async () => {
  const pipeline = await herdOf(20)
  await pipeline.worker('worker', 200, { batchSize: 4 }).runDue()

  const { rows } = await pipeline.database.pool.query(
    `select count(*)::int as lines, count(distinct (schedule_id, scheduled_for))::int as slots,
      count(*) filter (where state = 'succeeded')::int as succeeded
    from carillon.runs`,
  )
  expect(rows).toEqual([{ lines: 20, slots: 20, succeeded: 20 }])
  expect(pipeline.target.calls).toHaveLength(20)
})

test('a batch that fails to begin does not hold up the batch beside it', async () => {
  const pipeline = await herdOf(12)
  const worker = pipeline.worker('worker', 200, { batchSize: 4 })
  await worker.heartbeat.runOnce()
  await worker.loop.runOnce()
  // Makes the next insert into the ledger fail, which is that of one of two concurrent batches.
  await pipeline.database.pool.query(`
    create sequence public.inserts;
    grant usage on sequence public.inserts to public;
    create function fail_the_first() returns trigger language plpgsql as $$
    begin
      if nextval('public.inserts') = 1 then raise exception 'no' using errcode = '53100'; end if;
      return null;
    end $$;
    create trigger fail before insert on carillon.runs for each statement execute function fail_the_first()`)

  await expect(worker.loop.runOnce()).rejects.toMatchObject({ code: '53100' })
  await worker.loop.whenIdle()

  const { rows } = await pipeline.database.pool.query(
    `select count(*)::int as count from carillon.runs where state = 'succeeded'`,
  )
  await pipeline.database.pool.query(`
    drop trigger fail on carillon.runs; drop function fail_the_first; drop sequence public.inserts`)
  expect(rows).toEqual([{ count: 8 }])
})

/** Runs the loop until it finds nothing more. Unlike `runDue`, it does not wake the loop. */
async function claimAll({ heartbeat, loop }: TestWorker): Promise<void> {
  await heartbeat.runOnce()
  for (;;) {
    const { begun, skipped, taken } = await loop.runOnce()
    if (begun + skipped + taken === 0) break
  }
  await loop.whenIdle()
}

const HOLD_THE_FIRST = 'select from carillon.schedules order by id limit 1 for update'

describe.each([
  ['slots', () => herdOf(3)],
  ['waiting runs', () => waitingHerdOf(3)],
])('in a herd of %s', (_what, createHerd) => {
  test('a schedule that a claim skipped because it was locked is found again within a second', async () => {
    const pipeline = await createHerd()
    const { clock, target } = pipeline
    const worker = pipeline.worker()
    await whileHeld(pipeline, HOLD_THE_FIRST, () => claimAll(worker))
    expect(target.calls).toHaveLength(2)

    await claimAll(worker)
    expect(target.calls).toHaveLength(2)
    clock.advance(1000)
    await claimAll(worker)

    expect(target.calls).toHaveLength(3)
  })

  test.each(['', 'of its lane'])(
    'a wake %s makes the loop look at whole lanes, so it finds at once what lies before its position',
    async (which) => {
      const pipeline = await createHerd()
      const { database, target } = pipeline
      const worker = pipeline.worker()
      await whileHeld(pipeline, HOLD_THE_FIRST, () => claimAll(worker))
      const { rows } = await database.pool.query<{ lane: string }>('select lane from carillon.schedules limit 1')

      worker.loop.wake('test.no-such-lane')
      await claimAll(worker)
      expect(target.calls).toHaveLength(2)
      worker.loop.wake(which === '' ? '' : rows[0]?.lane)
      await claimAll(worker)

      expect(target.calls).toHaveLength(3)
    },
  )
})

test('all missed slots of a schedule get their lines, even if they lie before slots that were claimed already (I6)', async () => {
  const pipeline = await pipelineAt(START)
  const steady = await pipeline.create()
  await pipeline.create({ cadence: { kind: 'once', at: '2026-03-03T08:00:00Z' } })
  // 1,440 slots are more than one portion. The first portion ends before the other schedule in the same lane.
  pipeline.clock.advance(24 * 60 * MINUTE)

  await pipeline.worker().runDue()

  const { rows } = await pipeline.database.pool.query(
    'select count(*)::int as lines from carillon.runs where schedule_id = $1',
    [steady.id],
  )
  expect(rows).toEqual([{ lines: 1440 }])
})
