import { expect, test } from 'vitest'

import { idempotencyKey } from '../../src/kernel/ids.ts'
import { spreadOffsetMs } from '../../src/policy/spread.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const SLOT = Date.parse('2026-03-02T10:00:00Z')
const HOURLY = { kind: 'cron', expression: '0 * * * *', timezone: 'UTC' }
const SPREAD_SECONDS = 600

async function setup(policy: object = {}) {
  const pipeline = await pipelineAt('2026-03-02T09:30:00Z')
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ cadence: HOURLY, policy: { spreadSeconds: SPREAD_SECONDS, ...policy } })
  const offset = spreadOffsetMs(schedule.id, SPREAD_SECONDS)
  return { pipeline, worker, schedule, offset, scheduler: pipeline.scheduler }
}

test('a schedule with a spread is due after its slot, by the same offset at every slot', async () => {
  const { pipeline, worker, schedule, offset, scheduler } = await setup()

  pipeline.clock.advance(SLOT + offset - pipeline.clock.instant)
  await worker.runDue()

  expect(offset).toBeGreaterThan(0)
  expect(offset).toBeLessThan(SPREAD_SECONDS * 1000)
  expect(schedule).toMatchObject({ nextSlotAt: SLOT, dueAt: SLOT + offset })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({
    nextSlotAt: SLOT + HOUR,
    dueAt: SLOT + HOUR + offset,
  })
})

test('a schedule with a spread does not begin a millisecond before it is due (I10)', async () => {
  const { pipeline, worker, schedule, offset } = await setup()

  pipeline.clock.advance(SLOT - pipeline.clock.instant)
  await worker.runDue()
  pipeline.clock.advance(offset - 1)
  await worker.runDue()
  expect(await pipeline.lines(schedule)).toEqual([])
  pipeline.clock.advance(1)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
})

test('a run is identified by its nominal slot, which its key contains (I5)', async () => {
  const { pipeline, worker, schedule, offset } = await setup()

  pipeline.clock.advance(SLOT + offset - pipeline.clock.instant)
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ scheduledFor: SLOT, begunAt: SLOT + offset }])
  expect(pipeline.target.calls).toMatchObject([
    { scheduledFor: SLOT, idempotencyKey: idempotencyKey(schedule.id, SLOT) },
  ])
})

test('lateness counts from the instant at which a slot comes due, not from its nominal instant', async () => {
  const { pipeline, worker, schedule, offset } = await setup({ startingDeadlineSeconds: 1 })

  pipeline.clock.advance(SLOT + offset + 1000 - pipeline.clock.instant)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 succeeded'])
})

test('schedules with the same slot and a spread do not all run at the same time', async () => {
  const { pipeline, worker } = await setup()
  for (let more = 0; more < 30; more += 1) {
    await pipeline.create({ cadence: HOURLY, policy: { spreadSeconds: SPREAD_SECONDS } })
  }

  pipeline.clock.advance(SLOT + (SPREAD_SECONDS / 2) * 1000 - pipeline.clock.instant)
  await worker.runDue()

  expect(pipeline.target.calls.length).toBeGreaterThan(5)
  expect(pipeline.target.calls.length).toBeLessThan(26)
})

test('after an outage every slot that came due has its line, and a slot that is not due yet has none (I6)', async () => {
  const { pipeline, worker, schedule, offset } = await setup({ startingDeadlineSeconds: 1 })

  pipeline.clock.advance(SLOT + 2 * HOUR + offset - 1 - pipeline.clock.instant)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['10:00 skipped missed', '11:00 skipped missed'])
})

test('an edit of the spread changes when the next slot comes due, but not the slot', async () => {
  const { schedule, scheduler } = await setup()

  const edited = await scheduler.edit(CALLER, schedule.id, { policy: { spreadSeconds: 0 } }, { revision: 1 })

  expect(edited).toMatchObject({ nextSlotAt: SLOT, dueAt: SLOT })
})

test('a pause before a slot comes due leaves no line for it', async () => {
  const { pipeline, schedule, offset, scheduler } = await setup()
  pipeline.clock.advance(SLOT + offset - 1 - pipeline.clock.instant)

  await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

  expect(await pipeline.lines(schedule)).toEqual([])
})
