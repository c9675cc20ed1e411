import { once } from 'node:events'

import pg from 'pg'
import { describe, expect, test } from 'vitest'

import type { CreatedOnce } from '../../src/schedules/create-once.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, EVERY_MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const KEY = 'order-4711'
/** Blocks only the insert of an answer. */
const HOLD_ANSWERS = 'lock table carillon.idempotent_answers in share mode'

async function setup() {
  const pipeline = await pipelineAt(START)
  await sql`delete from carillon.idempotent_answers`.execute(pipeline.db)
  return { pipeline, scheduler: pipeline.scheduler }
}

/** The number of schedules in all projects, of answers, and of keys that are locked. */
async function counts({ db }: Pipeline): Promise<{ schedules: number; answers: number; locks: number }> {
  const { rows } = await sql<{ schedules: number; answers: number; locks: number }>`
    select (select count(*)::int from carillon.schedules) as schedules,
      (select count(*)::int from carillon.idempotent_answers) as answers,
      (
        select count(*)::int from pg_locks
        where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
      ) as locks`.execute(db)
  return rows[0] ?? { schedules: Number.NaN, answers: Number.NaN, locks: Number.NaN }
}

test('a repeated request creates one schedule and gets the same answer', async () => {
  const { pipeline, scheduler } = await setup()

  const first = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
  await scheduler.edit(CALLER, first.schedule.id, { name: 'renamed since' }, { revision: 1 })
  const again = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

  expect(first).toMatchObject({ isReplayed: false, schedule: { name: 'every minute', revision: 1, state: 'active' } })
  expect(again).toEqual({ isReplayed: true, schedule: first.schedule })
  expect(JSON.stringify(again.schedule)).toBe(JSON.stringify(first.schedule))
  expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
})

describe('an answer that another release stored with other fields', () => {
  const storeOlderAnswer = async ({ db }: Pipeline) => {
    await sql`update carillon.idempotent_answers set answer = (answer::jsonb - 'isGrantRevoked')::json`.execute(db)
  }

  test('is replaced by the schedule as it is now, and nothing is created', async () => {
    const { pipeline, scheduler } = await setup()
    const { schedule } = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
    await storeOlderAnswer(pipeline)
    const renamed = await scheduler.edit(CALLER, schedule.id, { name: 'renamed since' }, { revision: 1 })

    const again = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

    expect(again).toEqual({ isReplayed: true, schedule: renamed })
    expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
  })

  test('is refused as a used key if the schedule was deleted', async () => {
    const { pipeline, scheduler } = await setup()
    const { schedule } = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
    await storeOlderAnswer(pipeline)
    await scheduler.delete(CALLER, schedule.id)

    const again = scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

    await expect(again).rejects.toMatchObject({ code: 'idempotency_key_reused', message: /schedule was deleted/ })
    expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
  })
})

test('createOnce creates the same schedule and history as create, and emits one event', async () => {
  const { pipeline, scheduler } = await setup()
  const emitted: string[] = []
  pipeline.events.on('schedule.created', ({ scheduleId }) => emitted.push(scheduleId))

  const { schedule } = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
  await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

  expect(emitted).toEqual([schedule.id])
  expect(schedule).toEqual(await scheduler.get(CALLER, schedule.id))
  const created = await scheduler.create(CALLER, EVERY_MINUTE)
  // Each schedule has its own grant.
  expect({ ...schedule, id: '', grantId: '' }).toEqual({ ...created, id: '', grantId: '' })
  expect(schedule.grantId).not.toBe(created.grantId)
  expect(await scheduler.history(CALLER, schedule.id)).toMatchObject([{ change: 'created', actor: 'user:alice' }])
})

test('requests that differ only in the order of their keys are the same request', async () => {
  const { scheduler } = await setup()
  const { name, cadence, target } = EVERY_MINUTE
  const { kind, expression, timezone } = cadence

  await scheduler.createOnce(CALLER, { name, cadence, target }, KEY)
  const again = await scheduler.createOnce(CALLER, { target, cadence: { timezone, kind, expression }, name }, KEY)

  expect(again.isReplayed).toBe(true)
})

test.each<[what: string, input: object]>([
  ['another name', { name: 'another' }],
  ['another time', { cadence: { ...EVERY_MINUTE.cadence, expression: '0 9 * * *' } }],
  ['another order of a list', { target: { kind: 'test', list: [2, 1] } }],
])('a key that is reused with %s is rejected, and nothing is created', async (_what, change) => {
  const { pipeline, scheduler } = await setup()
  const input = { ...EVERY_MINUTE, target: { kind: 'test', list: [1, 2] } }
  const { schedule } = await scheduler.createOnce(CALLER, input, KEY)

  const reused = scheduler.createOnce(CALLER, { ...input, ...change }, KEY)

  await expect(reused).rejects.toMatchObject({ code: 'idempotency_key_reused' })
  expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
  expect(await scheduler.createOnce(CALLER, input, KEY)).toEqual({ isReplayed: true, schedule })
})

test('the same key of another caller in the project is a different key', async () => {
  const { scheduler } = await setup()
  const first = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

  const second = await scheduler.createOnce({ ...CALLER, subject: 'user:bob' }, EVERY_MINUTE, KEY)

  expect(second.isReplayed).toBe(false)
  expect(second.schedule.id).not.toBe(first.schedule.id)
  expect(second.schedule.ownerSubject).toBe('user:bob')
})

test('one of 50 concurrent requests creates the schedule, and the others get it or fail because it is under way', async () => {
  const { pipeline, scheduler } = await setup()
  // Opens every connection first, so that the requests really are concurrent.
  await Promise.all(Array.from({ length: 50 }, () => scheduler.list(CALLER)))

  const answers = await Promise.allSettled(
    Array.from({ length: 50 }, () => scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)),
  )

  const created = answers.flatMap((answer): CreatedOnce[] => (answer.status === 'fulfilled' ? [answer.value] : []))
  const refusals = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []))
  expect(created.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1)
  expect(new Set(created.map(({ schedule }) => schedule.id)).size).toBe(1)
  for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'idempotency_in_flight' })
  expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
})

test('once the answer is stored, all concurrent requests get it', async () => {
  const { scheduler } = await setup()
  const { schedule } = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

  const answers = await Promise.all(Array.from({ length: 20 }, () => scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)))

  expect(answers).toEqual(Array.from({ length: 20 }, () => ({ isReplayed: true, schedule })))
})

test('a second request fails at once while the first is under way', async () => {
  const { pipeline, scheduler } = await setup()

  let first: Promise<CreatedOnce> | undefined
  await whileHeld(pipeline, HOLD_ANSWERS, async () => {
    first = scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
    await whenBlocked(pipeline)
    const second = scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
    await expect(second).rejects.toMatchObject({ code: 'idempotency_in_flight' })
  })

  expect(await first).toMatchObject({ isReplayed: false })
  expect(await counts(pipeline)).toEqual({ schedules: 1, answers: 1, locks: 0 })
})

test('a crash between the schedule and its answer leaves neither, and releases the key', async () => {
  const { pipeline, scheduler } = await setup()

  await whileHeld(pipeline, HOLD_ANSWERS, async () => {
    const crashed = scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)
    crashed.catch(() => undefined)
    await whenBlocked(pipeline)
    await sql`
      select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`.execute(pipeline.db)
    await expect(crashed).rejects.toMatchObject({ code: '57P01' })
  })

  expect(await counts(pipeline)).toEqual({ schedules: 0, answers: 0, locks: 0 })
  expect(await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)).toMatchObject({ isReplayed: false })
})

test('a commit that fails leaves neither the schedule nor its answer', async () => {
  const { pipeline, scheduler } = await setup()
  await sql`
    create function carillon.fail() returns trigger language plpgsql as $$ begin raise 'as the test wants'; end $$`.execute(
    pipeline.db,
  )
  await sql`
    create constraint trigger fails_at_commit after insert on carillon.schedules
    deferrable initially deferred for each row execute function carillon.fail()`.execute(pipeline.db)

  await expect(scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)).rejects.toThrow('as the test wants')
  await sql`drop function carillon.fail() cascade`.execute(pipeline.db)

  expect(await counts(pipeline)).toEqual({ schedules: 0, answers: 0, locks: 0 })
  expect(await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)).toMatchObject({ isReplayed: false })
})

test('the same key of another tenant or project is a different key, even while the first is under way (I9)', async () => {
  const { pipeline, scheduler } = await setup()
  const otherCallers = [
    { ...CALLER, tenantId: 'globex' },
    { ...CALLER, projectId: 'mobile' },
  ]

  const ids = new Set<string>()
  for (const caller of [CALLER, ...otherCallers]) {
    const { schedule, isReplayed } = await scheduler.createOnce(caller, EVERY_MINUTE, KEY)
    ids.add(schedule.id)
    expect(isReplayed).toBe(false)
    expect(schedule).toMatchObject({ tenantId: caller.tenantId, projectId: caller.projectId })
  }
  expect(ids.size).toBe(3)
  const atOnce = await Promise.all(
    [CALLER, ...otherCallers].map((caller) => scheduler.createOnce(caller, EVERY_MINUTE, 'another')),
  )
  expect(atOnce.map(({ isReplayed }) => isReplayed)).toEqual([false, false, false])
  expect(await counts(pipeline)).toEqual({ schedules: 6, answers: 6, locks: 0 })
})

test.each<[what: string, input: unknown]>([
  ['an unknown field', { ...EVERY_MINUTE, color: 'red' }],
  ['an invalid cadence', { ...EVERY_MINUTE, cadence: { kind: 'cron', expression: 'often' } }],
  ['a cadence without a slot ahead', { ...EVERY_MINUTE, cadence: { kind: 'once', at: '2020-01-01T00:00:00Z' } }],
  ['a grant that does not exist', { ...EVERY_MINUTE, grantId: '0199d3c0-0000-7000-8000-000000000001' }],
  ['nothing', undefined],
  ['a list', []],
  ['an input that is not JSON', { ...EVERY_MINUTE, target: { kind: 'test', size: 1n } }],
])('a rejected input does not use up its key: %s', async (_what, input) => {
  const { pipeline, scheduler } = await setup()

  const refused = scheduler.createOnce(CALLER, input as never, KEY)

  await expect(refused).rejects.toMatchObject({ code: 'invalid_input' })
  expect(await counts(pipeline)).toEqual({ schedules: 0, answers: 0, locks: 0 })
  expect(await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)).toMatchObject({ isReplayed: false })
})

test('an answer is valid for exactly 24 hours, whether upkeep ran or not', async () => {
  const { pipeline, scheduler } = await setup()
  const other = { ...EVERY_MINUTE, name: 'another' }
  const { schedule } = await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)

  pipeline.clock.advance(DAY - 1)
  expect(await scheduler.createOnce(CALLER, EVERY_MINUTE, KEY)).toEqual({ isReplayed: true, schedule })
  pipeline.clock.advance(1)
  const later = await scheduler.createOnce(CALLER, other, KEY)

  expect(later).toMatchObject({ isReplayed: false, schedule: { name: 'another' } })
  expect(await scheduler.createOnce(CALLER, other, KEY)).toEqual({ isReplayed: true, schedule: later.schedule })
  expect(await counts(pipeline)).toEqual({ schedules: 2, answers: 1, locks: 0 })
})

test.each([undefined, null, 7, '', ' ', ' a', 'a ', 'x'.repeat(256), 'schlüssel', 'a\nb', 'a\0b', '\u{7f}'])(
  'a key that the header Idempotency-Key may not hold is rejected: %j',
  async (key) => {
    const { pipeline, scheduler } = await setup()

    const refused = scheduler.createOnce(CALLER, EVERY_MINUTE, key as string)

    await expect(refused).rejects.toMatchObject({ code: 'invalid_input', problems: [{ path: 'Idempotency-Key' }] })
    expect(await counts(pipeline)).toEqual({ schedules: 0, answers: 0, locks: 0 })
  },
)

test.each(['x', 'x'.repeat(255), '"a key" of { its } own ~'])(
  'a key of printable ASCII characters is accepted: %j',
  async (key) => {
    const { scheduler } = await setup()

    await scheduler.createOnce(CALLER, EVERY_MINUTE, key)

    expect(await scheduler.createOnce(CALLER, EVERY_MINUTE, key)).toMatchObject({ isReplayed: true })
  },
)

test('workers are notified of a new schedule that comes due within a second', async () => {
  const { pipeline, scheduler } = await setup()
  const client = new pg.Client({ connectionString: pipeline.database.url })
  await client.connect()
  await client.query('listen carillon_agenda')
  const notified = once(client, 'notification')

  const at = new Date(pipeline.clock.instant + 500).toISOString()
  await scheduler.createOnce(CALLER, { ...EVERY_MINUTE, cadence: { kind: 'once', at } }, KEY)

  expect(await notified).toMatchObject([{ channel: 'carillon_agenda' }])
  await client.end()
})
