import { describe, expect, test } from 'vitest'

import type { SlotPreview } from '../../src/schedules/options.ts'
import { whileHeld } from '../blocked-statement.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { insertGrant } from '../grant-rows.ts'
import { CALLER, DAY, MINUTE } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
/** A Monday. */
const START = '2026-03-02T09:00:30Z'
const BOB = { ...CALLER, subject: 'user:bob' }

function cron(expression: string, timezone = 'UTC'): object {
  return { kind: 'cron', expression, timezone }
}

async function setup(input: object = { cadence: cron('0 9 * * *') }, start = START) {
  const pipeline = await pipelineAt(start)
  const schedule = await pipeline.create(input)
  return { pipeline, schedule, scheduler: pipeline.scheduler }
}

/** A slot in its own zone: `Tue 2026-03-03 09:00`. */
function localText({ local }: SlotPreview): string {
  const day = new Date(`${local.slice(0, 10)}T00:00:00Z`).toUTCString().slice(0, 3)
  return `${day} ${local.slice(0, 10)} ${local.slice(11, 16)}`
}

interface Case {
  readonly what: string
  readonly from: object
  readonly to: object
  /** How many there are, and the first ones. */
  readonly added: [count: number, ...first: string[]]
  readonly removed: [count: number, ...first: string[]]
  readonly until: string | null
}

describe('which slots an edit of the cadence adds and removes', () => {
  test.each<Case>([
    {
      what: 'another time of day moves every slot, and adds that of today',
      from: cron('0 9 * * *'),
      to: cron('0 10 * * *'),
      added: [50, 'Mon 2026-03-02 10:00', 'Tue 2026-03-03 10:00'],
      removed: [50, 'Tue 2026-03-03 09:00', 'Wed 2026-03-04 09:00'],
      until: '2026-06-09T10:00:00.000Z',
    },
    {
      what: 'one weekday less removes only that day, as far as the denser cadence was compared',
      from: cron('0 9 * * 1-5'),
      to: cron('0 9 * * 1-4'),
      added: [0],
      removed: [20, 'Fri 2026-03-06 09:00', 'Fri 2026-03-13 09:00'],
      until: '2026-07-20T09:00:00.000Z',
    },
    {
      what: 'one weekday more adds only that day',
      from: cron('0 9 * * 1'),
      to: cron('0 9 * * 1,3'),
      added: [50, 'Wed 2026-03-04 09:00', 'Wed 2026-03-11 09:00'],
      removed: [0],
      until: '2027-02-15T09:00:00.000Z',
    },
    {
      what: 'weekends instead of weekdays replace every slot',
      from: cron('0 9 * * 1-5'),
      to: cron('0 9 * * 6,0'),
      added: [40, 'Sat 2026-03-07 09:00', 'Sun 2026-03-08 09:00'],
      removed: [50, 'Tue 2026-03-03 09:00', 'Wed 2026-03-04 09:00'],
      until: '2026-07-20T09:00:00.000Z',
    },
    {
      what: 'another zone moves every slot',
      from: cron('0 9 * * *', 'Europe/Madrid'),
      to: cron('0 9 * * *', 'America/New_York'),
      added: [50, 'Mon 2026-03-02 09:00', 'Tue 2026-03-03 09:00'],
      removed: [50, 'Tue 2026-03-03 09:00', 'Wed 2026-03-04 09:00'],
      until: '2026-06-09T13:00:00.000Z',
    },
    {
      what: 'another zone with the same clocks changes no slot',
      from: cron('0 9 * * *', 'Europe/Madrid'),
      to: cron('0 9 * * *', 'Europe/Paris'),
      added: [0],
      removed: [0],
      until: '2026-06-10T07:00:00.000Z',
    },
    {
      what: 'another spelling of the same cadence changes no slot',
      from: cron('0 9 * * 1-5'),
      to: cron('0 9 * * MON-FRI'),
      added: [0],
      removed: [0],
      until: null,
    },
    {
      what: 'another instant of a once cadence replaces its only slot',
      from: { kind: 'once', at: '2026-04-01T12:00:00Z' },
      to: { kind: 'once', at: '2026-05-01T12:00:00Z' },
      added: [1, 'Fri 2026-05-01 12:00'],
      removed: [1, 'Wed 2026-04-01 12:00'],
      until: null,
    },
    {
      what: 'a once cadence at one of the slots removes all the others',
      from: cron('0 9 * * *'),
      to: { kind: 'once', at: '2026-03-04T09:00:00Z' },
      added: [0],
      removed: [50, 'Tue 2026-03-03 09:00', 'Thu 2026-03-05 09:00'],
      until: '2026-06-10T09:00:00.000Z',
    },
    {
      what: 'an end removes the slots after it',
      from: { kind: 'cron', expression: '0 9 * * *', maxRuns: 10, startAt: '2026-03-02T00:00:00Z' },
      to: { kind: 'cron', expression: '0 9 * * *', maxRuns: 8, startAt: '2026-03-02T00:00:00Z' },
      added: [0],
      removed: [2, 'Tue 2026-03-10 09:00', 'Wed 2026-03-11 09:00'],
      until: null,
    },
  ])('$what', async ({ from, to, added, removed, until }) => {
    const { schedule, scheduler } = await setup({ cadence: from })

    const plan = await scheduler.planEdit(CALLER, schedule.id, { cadence: to })

    const shown = (slots: readonly SlotPreview[]) => [slots.length, ...slots.slice(0, 2).map(localText)]
    expect(shown(plan.added)).toEqual(added)
    expect(shown(plan.removed)).toEqual(removed)
    expect(plan.comparedUntil).toBe(until === null ? null : Date.parse(until))
  })

  test('each slot is shown in the zone of its own cadence', async () => {
    const { schedule, scheduler } = await setup({ cadence: cron('0 9 * * *', 'Europe/Madrid') })

    const { added, removed } = await scheduler.planEdit(CALLER, schedule.id, {
      cadence: cron('0 9 * * *', 'America/New_York'),
    })

    expect(removed[0]).toEqual({
      scheduledFor: Date.parse('2026-03-03T08:00:00Z'),
      local: '2026-03-03T09:00:00+01:00[Europe/Madrid]',
    })
    expect(added[0]).toEqual({
      scheduledFor: Date.parse('2026-03-02T14:00:00Z'),
      local: '2026-03-02T09:00:00-05:00[America/New_York]',
    })
  })

  test.each([
    { what: 'name', edit: { name: 'renamed' } },
    { what: 'target', edit: { target: { kind: 'test', body: 'new' } } },
    { what: 'policy', edit: { policy: { overlap: 'queue' } } },
    { what: 'spread', edit: { policy: { spreadSeconds: 3600 } } },
    { what: 'nothing', edit: {} },
  ])('an edit of the $what adds and removes no slot', async ({ edit }) => {
    const { schedule, scheduler } = await setup()

    const plan = await scheduler.planEdit(CALLER, schedule.id, edit)

    expect(plan).toMatchObject({ added: [], removed: [], comparedUntil: null })
  })

  test('a plan for a paused schedule compares the slots that it would have if it were resumed', async () => {
    const { schedule, scheduler } = await setup()
    const edit = { cadence: cron('0 10 * * *') }
    const active = await scheduler.planEdit(CALLER, schedule.id, edit)

    await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })
    const { schedule: planned, ...slots } = await scheduler.planEdit(CALLER, schedule.id, edit)

    expect({ ...active, schedule: null }).toEqual({ ...slots, schedule: null })
    expect(planned).toMatchObject({ state: 'paused', nextSlotAt: null, dueAt: null })
  })

  test('a slot that is not due yet because of its spread is removed with its cadence', async () => {
    const { pipeline, schedule, scheduler } = await setup(
      { cadence: cron('0 9 * * *'), policy: { spreadSeconds: 3600 } },
      '2026-03-02T08:59:30Z',
    )
    pipeline.clock.advance((schedule.dueAt ?? 0) - 1 - pipeline.clock.instant)

    const plan = await scheduler.planEdit(CALLER, schedule.id, { cadence: cron('0 9 * * 1-5') })

    expect(plan.removed.slice(0, 2).map(localText)).toEqual(['Mon 2026-03-02 09:00', 'Sat 2026-03-07 09:00'])
    expect(plan.schedule.nextSlotAt).toBe(Date.parse('2026-03-03T09:00:00Z'))
  })

  test('a stored cadence that cannot be read is treated as one without slots, so that an edit can repair it', async () => {
    const { pipeline, schedule, scheduler } = await setup()
    await sql`
      update carillon.schedule_revisions set cadence_cron = '{"kind": "cron", "expression": "?"}'
      where schedule_id = ${schedule.id}`.execute(pipeline.db)

    const plan = await scheduler.planEdit(CALLER, schedule.id, { cadence: cron('0 10 * * *') })

    expect(plan.removed).toEqual([])
    expect(plan.added.slice(0, 1).map(localText)).toEqual(['Mon 2026-03-02 10:00'])
  })

  test('a cadence that becomes too sparse to search is compared only up to that point', async () => {
    const { schedule, scheduler } = await setup()
    const rule = 'FREQ=SECONDLY;INTERVAL=3601;BYHOUR=0;BYMINUTE=0;BYSECOND=0,24,48'
    const thinning = { kind: 'rrule', rule, start: '2026-03-03T00:00:00', timezone: 'UTC' }

    const plan = await scheduler.planEdit(CALLER, schedule.id, { cadence: thinning })

    expect(plan.added.map(localText)).toEqual(['Tue 2026-03-03 00:00', 'Wed 2026-03-04 00:00', 'Thu 2026-03-05 00:00'])
    expect(plan.comparedUntil).toBe(Date.parse('2026-06-10T09:00:00Z'))
  })
})

describe('a plan predicts what the edit does', () => {
  test.each<[what: string, edit: object, state: 'active' | 'paused' | 'completed']>([
    ['a new cadence', { cadence: cron('0 10 * * 1-5', 'Europe/Madrid') }, 'active'],
    ['a new name', { name: '  renamed ' }, 'active'],
    ['a new target', { target: { kind: 'test', body: { b: 1, a: [2] }, gone: undefined } }, 'active'],
    ['a spread', { policy: { spreadSeconds: 600, retry: { maxAttempts: 2 } } }, 'active'],
    ['nothing', {}, 'active'],
    ['a new cadence while paused', { cadence: cron('0 10 * * *') }, 'paused'],
    ['a new name after the schedule is completed', { name: 'over' }, 'completed'],
    ['a new cadence after the schedule is completed', { cadence: cron('0 10 * * *') }, 'completed'],
  ])('%s changes the schedule as planned, and the plan writes nothing', async (_what, edit, state) => {
    const { pipeline, schedule, scheduler } = await setup(
      state === 'completed' ? { cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } } : undefined,
    )
    if (state === 'paused') await scheduler.pause(CALLER, schedule.id, { reason: 'holidays' })
    pipeline.clock.advance(MINUTE)
    await pipeline.worker().runDue()
    const [before, rows] = [await scheduler.get(CALLER, schedule.id), await countRows(pipeline)]

    const plan = await scheduler.planEdit(BOB, schedule.id, edit, { revision: 1 })

    expect(before.state).toBe(state)
    expect(await scheduler.get(CALLER, schedule.id)).toEqual(before)
    expect(await countRows(pipeline)).toEqual(rows)
    expect(plan.schedule).toEqual(await scheduler.edit(BOB, schedule.id, edit, { revision: 1 }))
  })

  test('after the edit the schedule has the added slots and not the removed ones', async () => {
    const { schedule, scheduler } = await setup({ cadence: cron('0 9,12 * * 1-5') })
    const edit = { cadence: cron('30 9 * * *') }

    const { added, removed, comparedUntil } = await scheduler.planEdit(CALLER, schedule.id, edit)
    const range = { to: (comparedUntil ?? 0) + 1, limit: 1000 }
    const old = await scheduler.slots(CALLER, schedule.id, range)
    await scheduler.edit(CALLER, schedule.id, edit, { revision: 1 })
    const edited = await scheduler.slots(CALLER, schedule.id, range)

    const instants = (slots: readonly SlotPreview[]) => slots.map(({ scheduledFor }) => scheduledFor)
    expect(instants(added)).toEqual(instants(edited).slice(0, 50))
    expect(instants(removed)).toEqual(instants(old).slice(0, 50))
  })

  test('a grant of the project is accepted', async () => {
    const { pipeline, schedule, scheduler } = await setup()
    const grantId = await insertGrant(pipeline)

    const plan = await scheduler.planEdit(CALLER, schedule.id, { grantId })

    expect(plan.schedule).toEqual(await scheduler.edit(CALLER, schedule.id, { grantId }, { revision: 1 }))
  })

  test('a plan does not wait for the lock of the schedule', async () => {
    const { pipeline, schedule, scheduler } = await setup()

    await whileHeld(pipeline, 'select from carillon.schedules for update', async () => {
      const plan = await scheduler.planEdit(CALLER, schedule.id, { name: 'renamed' })
      expect(plan.schedule.name).toBe('renamed')
    })
  })
})

describe('a plan rejects what an edit rejects, with the same problems', () => {
  async function refusal(call: () => Promise<unknown>): Promise<{ code: unknown; problems: unknown; message: string }> {
    try {
      await call()
    } catch (error) {
      return error as { code: unknown; problems: unknown; message: string }
    }
    throw new Error('expected a rejection, got a result')
  }

  test.each<[what: string, edit: unknown, code: string, revision?: number]>([
    ['nothing', undefined, 'invalid_input'],
    ['null', null, 'invalid_input'],
    ['an unknown field', { state: 'deleted' }, 'invalid_input'],
    ['two faults', { name: '', cadence: cron('often') }, 'invalid_input'],
    ['a cadence that is too frequent', { cadence: { kind: 'interval', every: 'PT1S' } }, 'invalid_input'],
    ['a cadence without a slot ahead', { cadence: { kind: 'once', at: '2020-01-01T00:00:00Z' } }, 'invalid_input'],
    ['an unknown target kind', { target: { kind: 'moon' } }, 'invalid_input'],
    ['an invalid policy', { policy: { overlap: 'maybe' } }, 'invalid_input'],
    ['an invalid grant id', { grantId: 'mine' }, 'invalid_input'],
    ['a grant that does not exist', { grantId: '0199d3c0-0000-7000-8000-000000000001' }, 'invalid_input'],
    ['another revision', { name: 'late' }, 'revision_conflict', 7],
  ])('%s', async (_what, edit, code, revision = 1) => {
    const { schedule, scheduler } = await setup()

    const planned = await refusal(() => scheduler.planEdit(CALLER, schedule.id, edit as never, { revision }))
    const edited = await refusal(() => scheduler.edit(CALLER, schedule.id, edit as never, { revision }))

    expect(planned.code).toBe(code)
    const { problems, message } = edited
    expect(planned).toMatchObject({ code: edited.code, problems, message })
  })

  test('a schedule of another project (I9), and a deleted schedule', async () => {
    const { pipeline, schedule, scheduler } = await setup()
    const otherCaller = { ...CALLER, projectId: 'mobile' }

    await expect(scheduler.planEdit(otherCaller, schedule.id, {})).rejects.toMatchObject({ code: 'schedule_not_found' })
    pipeline.clock.advance(DAY)
    await scheduler.delete(CALLER, schedule.id)
    await expect(scheduler.planEdit(CALLER, schedule.id, {})).rejects.toMatchObject({ code: 'schedule_not_found' })
  })

  test('a grant of another project (I9)', async () => {
    const { pipeline, schedule, scheduler } = await setup()
    const grantId = await insertGrant(pipeline, { projectId: 'mobile' })

    const planned = scheduler.planEdit(CALLER, schedule.id, { grantId })

    await expect(planned).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'grantId' }] })
  })
})
