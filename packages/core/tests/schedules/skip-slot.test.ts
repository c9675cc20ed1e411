import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const SLOT_1 = Date.parse('2026-03-02T09:01:00Z')
const SLOT_2 = SLOT_1 + MINUTE
const BOB = { ...CALLER, subject: 'user:bob' }

async function setup() {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  return { pipeline, worker: pipeline.worker(), schedule, scheduler: pipeline.scheduler }
}

test('a skipped slot does not run and gets the line excluded; the others run (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()

  const skipped = await scheduler.skip(BOB, schedule.id, SLOT_2)
  for (let slot = 0; slot < 3; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  expect(skipped).toMatchObject({ excludedSlots: [SLOT_2], nextSlotAt: SLOT_1, revision: 1 })
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 skipped excluded', '09:03 succeeded'])
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ excludedSlots: [] })
  expect((await scheduler.history(CALLER, schedule.id))[0]).toMatchObject({
    change: 'slot_skipped',
    actor: 'user:bob',
    reason: '2026-03-02T09:02:00.000Z',
    changedAt: Date.parse(START),
  })
})

test('a restored slot runs as if it had never been skipped', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.skip(CALLER, schedule.id, SLOT_1)
  await scheduler.skip(CALLER, schedule.id, SLOT_2)

  const restored = await scheduler.restore(BOB, schedule.id, SLOT_1)
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(restored.excludedSlots).toEqual([SLOT_2])
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect((await scheduler.history(CALLER, schedule.id))[0]).toMatchObject({
    change: 'slot_restored',
    actor: 'user:bob',
    reason: '2026-03-02T09:01:00.000Z',
  })
})

test('skipping a slot twice is the same as skipping it once', async () => {
  const { schedule, scheduler } = await setup()

  await scheduler.skip(CALLER, schedule.id, SLOT_1)
  const { excludedSlots } = await scheduler.skip(CALLER, schedule.id, SLOT_1)

  expect(excludedSlots).toEqual([SLOT_1])
})

test.each([
  { what: 'is past', slot: SLOT_1 - MINUTE },
  { what: 'is the current instant', slot: SLOT_1 - MINUTE / 2 },
  { what: 'lies between two slots', slot: SLOT_1 + 1 },
  { what: 'lies beyond all slots', slot: 8.64e15 },
  { what: 'is NaN', slot: Number.NaN },
  { what: 'is endless', slot: Number.POSITIVE_INFINITY },
  { what: 'is a fraction of a millisecond', slot: SLOT_1 + 0.5 },
])('a slot that $what cannot be skipped', async ({ slot }) => {
  const { schedule, scheduler } = await setup()

  const skipped = scheduler.skip(CALLER, schedule.id, slot)

  await expect(skipped).rejects.toMatchObject({ code: 'slot_not_found', problems: [{ path: 'scheduledFor' }] })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ excludedSlots: [] })
  expect(await scheduler.history(CALLER, schedule.id)).toHaveLength(1)
})

test('a slot that is due cannot be skipped, and a slot that was not skipped cannot be restored', async () => {
  const { pipeline, schedule, scheduler } = await setup()
  pipeline.clock.advance(MINUTE / 2)

  await expect(scheduler.skip(CALLER, schedule.id, SLOT_1)).rejects.toMatchObject({ code: 'slot_not_found' })
  await expect(scheduler.restore(CALLER, schedule.id, SLOT_2)).rejects.toMatchObject({ code: 'slot_not_found' })
})

test('at most a hundred slots of a schedule can be skipped at a time', async () => {
  const { pipeline, schedule, scheduler } = await setup()
  await sql`
    update carillon.schedules
    set excluded_slots = array(select next_slot_at + n * interval '1 minute' from generate_series(0, 98) as n)`.execute(
    pipeline.db,
  )
  await scheduler.skip(CALLER, schedule.id, SLOT_1 + 99 * MINUTE)

  const oneMore = scheduler.skip(CALLER, schedule.id, SLOT_1 + 100 * MINUTE)

  await expect(oneMore).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'scheduledFor' }] })
})

test('after an outage a skipped slot has the line excluded, and the others are missed (I6)', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.skip(CALLER, schedule.id, SLOT_2)

  pipeline.clock.advance(2.5 * MINUTE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 skipped missed', '09:02 skipped excluded', '09:03 succeeded'])
})

test('a manual run at the instant of a skipped slot does not replace that slot', async () => {
  const { pipeline, worker, schedule, scheduler } = await setup()
  await scheduler.skip(CALLER, schedule.id, SLOT_1)
  pipeline.clock.advance(MINUTE / 2)

  await scheduler.runNow(CALLER, schedule.id)
  await worker.runDue()
  await worker.runDue()

  expect((await pipeline.ledger(schedule)).map(({ scheduledFor, state }) => [scheduledFor - SLOT_1, state])).toEqual([
    [-1, 'succeeded'],
    [0, 'skipped'],
  ])
})
