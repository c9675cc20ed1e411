import { CREATE_MANY_MAX } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { Members } from '../../src/access/members.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { Scheduler } from '../../src/scheduler.ts'
import type { ScheduleInput } from '../../src/schedules/input.ts'
import type { SchedulerOptions } from '../../src/schedules/options.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { insertGrant } from '../grant-rows.ts'
import { ANY_NUMBER, CALLER, EVERY_MINUTE, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30.123Z'
const SERVICE: Caller = { ...CALLER, subject: 'service:importer' }

const ONCE = { kind: 'once', at: '2026-03-03T09:00:00', timezone: 'Europe/Madrid' }
/** One input of each kind of cadence, with texts that careless quoting would break. */
const INPUTS: readonly ScheduleInput[] = [
  EVERY_MINUTE,
  { ...EVERY_MINUTE, name: 'once', cadence: ONCE },
  { ...EVERY_MINUTE, name: 'interval', cadence: { kind: 'interval', every: 'PT90S', timezone: 'UTC' } },
  {
    ...EVERY_MINUTE,
    name: 'rrule',
    cadence: { kind: 'rrule', rule: 'FREQ=DAILY', start: '2026-03-01T08:00:00', timezone: 'UTC' },
    policy: { spreadSeconds: 600, overlap: 'queue', retry: { maxAttempts: 3 } },
  },
  {
    ...EVERY_MINUTE,
    name: 'frequency',
    cadence: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00', timezone: 'UTC' },
  },
  {
    ...EVERY_MINUTE,
    name: ' {"},\\ \t\n\'é😀,null ',
    target: {
      kind: 'test',
      payload: { text: '\u0000\n\\"{},😀\ud800', nothing: null, left: undefined, list: ['', -0] },
    },
  },
]

function schedulerOf({ db, clock, targets }: Pipeline, options: SchedulerOptions = ANY_NUMBER): Scheduler {
  return new Scheduler({ db, clock, targets }, options)
}

async function problemsOf(creating: Promise<unknown>): Promise<string[]> {
  const error = (await creating.catch((thrown: unknown) => thrown)) as { problems?: { path: string }[] }
  return error.problems?.map(({ path }) => path) ?? []
}

describe('the answer of a create', () => {
  test.each(INPUTS)('equals what a read of the schedule returns: $name', async (input) => {
    const pipeline = await pipelineAt(START)

    const created = await pipeline.scheduler.create(CALLER, input)

    const read = await pipeline.scheduler.get(CALLER, created.id)
    expect(created).toEqual(read)
    expect(JSON.stringify(created)).toBe(JSON.stringify(read))
  })

  test('also equals the read schedule with a given owner and grant, by the clock of Postgres', async () => {
    const pipeline = await pipelineAt(START)
    const grantId = await insertGrant(pipeline, { expiresAt: '2030-01-01T00:00:00.5Z' })
    const { db, targets } = pipeline
    const scheduler = new Scheduler({ db, targets }, ANY_NUMBER)

    const input = { ...EVERY_MINUTE, grantId: grantId.toUpperCase(), ownerSubject: 'user:bob' }
    const created = await scheduler.create(SERVICE, input)

    const read = await scheduler.get(SERVICE, created.id)
    expect(JSON.stringify(created)).toBe(JSON.stringify(read))
    expect(read).toMatchObject({
      grantId,
      ownerSubject: 'user:bob',
      grantExpiresAt: Date.parse('2030-01-01T00:00:00.5Z'),
    })
  })

  test('can be mutated by its caller without affecting a later schedule', async () => {
    const { scheduler } = await pipelineAt(START)
    const first = await scheduler.create(CALLER, EVERY_MINUTE)
    const { policy, cadence } = structuredClone(first)

    Object.assign(first.policy.retry, { maxAttempts: 99 })
    Object.assign(first.cadence, { timezone: 'Europe/Madrid' })

    const second = await scheduler.create(CALLER, EVERY_MINUTE)
    expect(second).toMatchObject({ policy, cadence })
  })
})

describe('many schedules', () => {
  test('are created like single ones, and their ids come in the order of the inputs', async () => {
    const pipeline = await pipelineAt(START)
    const emitted: string[] = []
    pipeline.events.on('schedule.created', ({ scheduleId }) => emitted.push(scheduleId))

    const ids = await pipeline.scheduler.createMany(CALLER, INPUTS)

    expect(emitted).toEqual(ids)
    expect(ids.toSorted()).toEqual(ids)
    for (const [index, input] of INPUTS.entries()) {
      const alone = await pipeline.scheduler.create(CALLER, input)
      const { id, grantId, dueAt } = alone
      const { name, policy } = alone
      const many = await pipeline.scheduler.get(CALLER, ids[index] ?? '')
      // Each schedule comes due at its own instant because of its spread.
      const own = { id, grantId, ...(policy.spreadSeconds > 0 ? { dueAt } : {}) }
      expect({ ...many, ...own }, name).toEqual(alone)
      expect(many.grantId).not.toBe(grantId)
    }
  })

  test('make one entry in the event log, and each has its revision, its grant and its history', async () => {
    const pipeline = await pipelineAt(START)

    const [first = ''] = await schedulerOf(pipeline).createMany(CALLER, Array<ScheduleInput>(40).fill(EVERY_MINUTE))

    expect(await countRows(pipeline)).toMatchObject({
      'carillon.schedules': 40,
      'carillon.schedule_revisions': 40,
      'carillon.execution_grants': 40,
      'carillon.schedule_changes': 40,
      'carillon.feed_entries': 1,
      'carillon.runs': 0,
    })
    expect(await pipeline.scheduler.history(CALLER, first)).toMatchObject([{ change: 'created', actor: 'user:alice' }])
  })

  test('are not created if one is invalid, and each problem has the path of its input', async () => {
    const pipeline = await pipelineAt(START)
    const inputs = [
      EVERY_MINUTE,
      { ...EVERY_MINUTE, cadence: { ...EVERY_MINUTE.cadence, expression: '61 * * * *' } },
      { ...EVERY_MINUTE, name: '', ownerSubject: 'user:mallory' },
      { ...EVERY_MINUTE, ownerSubject: 'user:mallory' },
      null as unknown as ScheduleInput,
    ]

    const paths = await problemsOf(pipeline.scheduler.createMany(CALLER, inputs))

    const expected = [
      'schedules[1].cadence.expression',
      'schedules[2].name',
      'schedules[3].ownerSubject',
      'schedules[4]',
    ]
    expect(paths).toEqual(expected)
    expect(await problemsOf(pipeline.scheduler.planCreateMany(CALLER, inputs))).toEqual(expected)
    expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 0, 'carillon.execution_grants': 0 })
  })

  test('may act by grants of their own project that are in force, for owners that were not removed (I8, I9)', async () => {
    const pipeline = await pipelineAt(START)
    await new Members(pipeline).remove(CALLER, 'user:bob')
    const [good, foreign, expired] = [
      await insertGrant(pipeline),
      await insertGrant(pipeline, { tenantId: 'evil' }),
      await insertGrant(pipeline, { expiresAt: '2026-03-01T00:00:00Z' }),
    ]
    const { id: other } = await pipeline.scheduler.create(CALLER, EVERY_MINUTE)
    const { grantId: own } = await pipeline.scheduler.get(CALLER, other)
    const grants = [good, foreign, expired, own].map((grantId) => ({ ...EVERY_MINUTE, grantId }))
    const inputs = [...grants, { ...EVERY_MINUTE, ownerSubject: 'user:bob' }]

    expect(await problemsOf(pipeline.scheduler.createMany(SERVICE, inputs))).toEqual([
      'schedules[1].grantId',
      'schedules[2].grantId',
      'schedules[3].grantId',
      'schedules[4].ownerSubject',
    ])
    expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 1 })
    const [id = ''] = await pipeline.scheduler.createMany(SERVICE, grants.slice(0, 1))
    expect(await pipeline.scheduler.get(SERVICE, id)).toMatchObject({ grantId: good, ownerSubject: SERVICE.subject })
  })

  test('are created only if the quota has room for all, also with concurrent requests', async () => {
    const pipeline = await pipelineAt(START)
    const scheduler = schedulerOf(pipeline, { ...ANY_NUMBER, maxSchedulesPerProject: 25 })
    const ten = Array<ScheduleInput>(10).fill(EVERY_MINUTE)

    const settled = await Promise.allSettled(Array.from({ length: 6 }, () => scheduler.createMany(SERVICE, ten)))

    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as { code: string }] : []))
    expect(refused.map(({ code }) => code)).toEqual(Array(4).fill('quota_exceeded'))
    expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 20, 'carillon.schedule_changes': 20 })
  })

  test.each([[[]], [Array<ScheduleInput>(CREATE_MANY_MAX + 1).fill(EVERY_MINUTE)], [null], [{ length: 1 }]])(
    'are rejected if the input is empty, too long or not a list',
    async (inputs) => {
      const { scheduler } = await pipelineAt(START)

      const creating = scheduler.createMany(CALLER, inputs as readonly ScheduleInput[])

      await expect(creating).rejects.toMatchObject({
        code: 'invalid_input',
        problems: [{ path: 'schedules', message: expect.stringContaining('a list of 1 to 5000') as string }],
      })
    },
  )

  test('are created once per key: the same request gets the same answer, and another request is rejected', async () => {
    const pipeline = await pipelineAt(START)
    const { scheduler } = pipeline
    await sql`delete from carillon.idempotent_answers`.execute(pipeline.db)
    const two = [EVERY_MINUTE, { ...EVERY_MINUTE, name: 'b' }]

    const first = await scheduler.createManyOnce(CALLER, two, 'nightly')
    const again = await scheduler.createManyOnce(CALLER, two, 'nightly')

    expect(first).toMatchObject({ isReplayed: false, ids: { length: 2 } })
    expect(again).toEqual({ isReplayed: true, ids: first.ids })
    const reused = { code: 'idempotency_key_reused' }
    await expect(scheduler.createManyOnce(CALLER, two.toReversed(), 'nightly')).rejects.toMatchObject(reused)
    await expect(scheduler.createManyOnce(CALLER, two.slice(0, 1), 'nightly')).rejects.toMatchObject(reused)
    await expect(scheduler.createOnce(CALLER, EVERY_MINUTE, 'nightly')).rejects.toMatchObject(reused)
    expect(await countRows(pipeline)).toMatchObject({ 'carillon.schedules': 2, 'carillon.idempotent_answers': 1 })
  })
})
