import { describe, expect, test } from 'vitest'

import { slotsOf } from '../../src/schedules/slots.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, HOUR, MINUTE } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const AT_NINE = { cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'Europe/Madrid' } }
const TOMORROW = Date.parse('2026-03-03T08:00:00Z')
/** Three slots, then none for years, so the search for the next one takes many steps. */
const SPARSE = {
  cadence: {
    kind: 'rrule',
    rule: 'FREQ=SECONDLY;INTERVAL=3601;BYHOUR=0;BYMINUTE=0;BYSECOND=0,24,48',
    start: '2026-03-03T00:00:00',
    timezone: 'UTC',
  },
}

async function setup(input: object = AT_NINE) {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create(input)
  return { pipeline, schedule, scheduler: pipeline.scheduler }
}

describe('the slots of a schedule', () => {
  test('are those of its cadence from now on, by the clock of Postgres, in its own zone', async () => {
    const { schedule, scheduler } = await setup()

    const slots = await scheduler.slots(CALLER, schedule.id)

    expect(slots).toHaveLength(50)
    expect(slots[0]).toEqual({
      scheduledFor: TOMORROW,
      local: '2026-03-03T09:00:00+01:00[Europe/Madrid]',
      isSkipped: false,
    })
    expect(slots.at(-1)?.local).toBe('2026-04-21T09:00:00+02:00[Europe/Madrid]')
  })

  test('include one at the start of the range, and none at its end', async () => {
    const { schedule, scheduler } = await setup()

    const range = { from: TOMORROW, to: TOMORROW + 3 * DAY }
    const slots = await scheduler.slots(CALLER, schedule.id, range)
    const whole = await scheduler.slots(CALLER, schedule.id, { ...range, to: range.to + 1 })

    expect(slots.map(({ scheduledFor }) => scheduledFor)).toEqual([TOMORROW, TOMORROW + DAY, TOMORROW + 2 * DAY])
    expect(whole).toHaveLength(4)
  })

  test('are as many as requested, up to a thousand', async () => {
    const { schedule, scheduler } = await setup()

    expect(await scheduler.slots(CALLER, schedule.id, { limit: 2 })).toHaveLength(2)
    expect(await scheduler.slots(CALLER, schedule.id, { limit: 1000 })).toHaveLength(1000)
  })

  test('can be in the past, and a range that ends before it begins has none', async () => {
    const { schedule, scheduler } = await setup()

    const past = await scheduler.slots(CALLER, schedule.id, { from: TOMORROW - 3 * DAY, to: TOMORROW })

    expect(past).toHaveLength(3)
    expect(await scheduler.slots(CALLER, schedule.id, { from: TOMORROW, to: TOMORROW - DAY })).toEqual([])
  })

  test('show which of them are skipped', async () => {
    const { schedule, scheduler } = await setup()
    await scheduler.skip(CALLER, schedule.id, TOMORROW + DAY)

    const slots = await scheduler.slots(CALLER, schedule.id, { limit: 3 })

    expect(slots.map(({ isSkipped }) => isSkipped)).toEqual([false, true, false])
  })

  test('of a paused schedule are those of its cadence', async () => {
    const { schedule, scheduler } = await setup()
    const active = await scheduler.slots(CALLER, schedule.id)

    await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })

    expect(await scheduler.slots(CALLER, schedule.id)).toEqual(active)
  })

  test('of a completed schedule can still be read', async () => {
    const at = '2026-03-02T09:01:00Z'
    const { pipeline, schedule, scheduler } = await setup({ cadence: { kind: 'once', at } })
    pipeline.clock.advance(MINUTE)
    await pipeline.worker().runDue()

    expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
    expect(await scheduler.slots(CALLER, schedule.id)).toEqual([])
    expect(await scheduler.slots(CALLER, schedule.id, { from: 0 })).toMatchObject([{ scheduledFor: Date.parse(at) }])
  })

  test('follow an edit at once', async () => {
    const { schedule, scheduler } = await setup()
    await scheduler.edit(CALLER, schedule.id, { cadence: { kind: 'interval', every: 'PT1H' } }, { revision: 1 })

    const [first, second] = await scheduler.slots(CALLER, schedule.id)

    expect((second?.scheduledFor ?? 0) - (first?.scheduledFor ?? 0)).toBe(HOUR)
  })

  test('are fewer if the search would take too long', async () => {
    const { schedule, scheduler } = await setup(SPARSE)

    const slots = await scheduler.slots(CALLER, schedule.id)

    expect(slots.length).toBeGreaterThanOrEqual(3)
    expect(slots.length).toBeLessThan(50)
  })

  test('of another tenant or project are not found (I9), nor those of a deleted schedule', async () => {
    const { schedule, scheduler } = await setup()

    for (const otherCaller of [
      { ...CALLER, tenantId: 'globex' },
      { ...CALLER, projectId: 'mobile' },
    ]) {
      await expect(scheduler.slots(otherCaller, schedule.id)).rejects.toMatchObject({ code: 'schedule_not_found' })
    }
    await scheduler.delete(CALLER, schedule.id)
    await expect(scheduler.slots(CALLER, schedule.id)).rejects.toMatchObject({ code: 'schedule_not_found' })
  })

  test.each<[what: string, range: object, path: string]>([
    ['from NaN', { from: Number.NaN }, 'from'],
    ['from before 1970', { from: -1 }, 'from'],
    ['from a string', { from: 'tomorrow' }, 'from'],
    ['to beyond the last date', { to: 1e20 }, 'to'],
    ['to a fraction of a millisecond', { to: 0.5 }, 'to'],
    ['none', { limit: 0 }, 'limit'],
    ['too many', { limit: 1001 }, 'limit'],
  ])('are rejected with the field: %s', async (_what, range, path) => {
    const { schedule, scheduler } = await setup()

    const refused = scheduler.slots(CALLER, schedule.id, range)

    await expect(refused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path }] })
  })
})

test('a resume, manual run or skip of a cadence that is too sparse to search is rejected, and changes nothing', async () => {
  const { pipeline, schedule, scheduler } = await setup(SPARSE)
  await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })
  pipeline.clock.advance(7 * DAY)

  const refusal = { code: 'invalid_input', problems: [{ path: 'cadence' }] }
  await expect(scheduler.resume(CALLER, schedule.id)).rejects.toMatchObject(refusal)
  await expect(scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject(refusal)
  await expect(scheduler.skip(CALLER, schedule.id, pipeline.clock.instant + DAY)).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'scheduledFor' }],
  })
  expect(await scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'paused', runCount: 0 })
})

test('slotsOf computes the same slots from a schedule that was read, without a query', async () => {
  const { schedule, scheduler } = await setup()
  const skipped = await scheduler.skip(CALLER, schedule.id, TOMORROW)
  const range = { from: TOMORROW, to: TOMORROW + 3 * DAY, limit: 2 }

  const slots = slotsOf(skipped, range)

  expect(slots).toEqual(await scheduler.slots(CALLER, schedule.id, range))
  expect(slots.map(({ isSkipped }) => isSkipped)).toEqual([true, false])
})
