import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CarillonError } from '../../src/kernel/errors.ts'
import type { Target } from '../../src/ports/target.ts'
import { countRows } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, Pipeline } from '../pipeline.ts'
import { ScriptedTarget } from '../scripted-target.ts'

let pipeline: Pipeline
let scheduleId: string
let before: Record<string, number>

beforeAll(async () => {
  pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const shortRetention = Object.assign(new ScriptedTarget(), { idempotencyRetentionSeconds: 300 })
  ;(pipeline.targets as Map<string, Target>).set('test', shortRetention)
  scheduleId = (await pipeline.create()).id
  before = await countRows(pipeline)
})

afterAll(() => pipeline[Symbol.asyncDispose]())

/** The error of a call, which must not have written anything. */
async function refusal(call: () => Promise<unknown>): Promise<CarillonError> {
  let thrown: unknown
  try {
    await call()
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(CarillonError)
  expect(await countRows(pipeline)).toEqual(before)
  return thrown as CarillonError
}

function create(input: object): Promise<CarillonError> {
  return refusal(() => pipeline.create(input))
}

const CRON = { kind: 'cron', timezone: 'UTC' }
const deep: unknown[] = []
for (let at = deep, depth = 0; depth < 100_000; depth += 1) {
  const below: unknown[] = []
  at.push(below)
  at = below
}
const circular: Record<string, unknown> = { kind: 'test' }
circular['self'] = circular

describe('an invalid schedule is rejected with the field and the expected value, and nothing is written', () => {
  test.each<[what: string, input: object, path: string, message: RegExp]>([
    ['no name', { name: undefined }, 'name', /expected a text of 1 to 200 characters.*got nothing/],
    ['an empty name', { name: '  ' }, 'name', /1 to 200/],
    ['a long name', { name: 'x'.repeat(201) }, 'name', /1 to 200/],
    ['a number as the name', { name: 7 }, 'name', /got 7/],
    ['a name with U+0000', { name: 'a\0b' }, 'name', /U\+0000/],
    ['a name with half a character', { name: '\ud800' }, 'name', /expected/],
    ['no cadence', { cadence: undefined }, 'cadence', /expected an object/],
    ['a string as the cadence', { cadence: '* * * * *' }, 'cadence', /expected an object/],
    ['a cadence without a kind', { cadence: {} }, 'cadence.kind', /once, cron, rrule, interval, frequency/],
    ['a cadence of an unknown kind', { cadence: { kind: 'lunar' } }, 'cadence.kind', /lunar/],
    ['an invalid cron expression', { cadence: { ...CRON, expression: 'x' } }, 'cadence.expression', /expected/],
    ['an hour that does not exist', { cadence: { ...CRON, expression: '0 25 * * *' } }, 'cadence.expression', /25/],
    ['a day that never comes', { cadence: { ...CRON, expression: '0 0 30 2 *' } }, 'cadence.expression', /slot/],
    [
      'a zone that does not exist',
      { cadence: { ...CRON, expression: '0 9 * * *', timezone: 'Mars/Base' } },
      'cadence.timezone',
      /Mars/,
    ],
    ['an interval below a minute', { cadence: { kind: 'interval', every: 'PT59S' } }, 'cadence.every', /60 seconds/],
    [
      'a field of another kind of cadence',
      { cadence: { ...CRON, expression: '0 9 * * *', at: 'x' } },
      'cadence.at',
      /at/,
    ],
    [
      'an invalid RRULE',
      { cadence: { kind: 'rrule', rule: 'FREQ=NEVER', start: '2026-01-01T00:00:00', timezone: 'UTC' } },
      'cadence.rule',
      /NEVER/,
    ],
    ['a once in the past', { cadence: { kind: 'once', at: '2026-03-01T00:00:00Z' } }, 'cadence', /in the future/],
    ['no target', { target: undefined }, 'target', /expected an object whose kind is one of test/],
    ['a string as the target', { target: 'http://example.com' }, 'target', /expected an object/],
    ['a list as the target', { target: [] }, 'target.kind', /one of test, got nothing/],
    ['a target without a kind', { target: {} }, 'target.kind', /one of test, got nothing/],
    ['a target of an unknown kind', { target: { kind: 'fax' } }, 'target.kind', /one of test, got "fax"/],
    [
      'a target whose kind is a property of every object',
      { target: { kind: '__proto__' } },
      'target.kind',
      /one of test/,
    ],
    [
      'a target that its kind rejects',
      { target: { kind: 'test', timeoutSeconds: 'soon' } },
      'target.timeoutSeconds',
      /number/,
    ],
    ['a string as the policy', { policy: 'strict' }, 'policy', /expected an object/],
    ['null as the policy', { policy: null }, 'policy', /expected an object, got null/],
    ['an unknown overlap', { policy: { overlap: 'maybe' } }, 'policy.overlap', /forbid, queue, allow, replace/],
    ['an unknown missed', { policy: { missed: 'all' } }, 'policy.missed', /skip, run_once/],
    ['an unknown field of the policy', { policy: { overlaps: 'queue' } }, 'policy.overlaps', /no such field/],
    ['a threshold of two', { policy: { autoPauseThreshold: 2 } }, 'policy.autoPauseThreshold', /0 .*3 to 100/],
    ['a threshold of 101', { policy: { autoPauseThreshold: 101 } }, 'policy.autoPauseThreshold', /3 to 100/],
    ['a spread of more than an hour', { policy: { spreadSeconds: 3601 } }, 'policy.spreadSeconds', /0 to 3600/],
    ['no attempts', { policy: { retry: { maxAttempts: 0 } } }, 'policy.retry.maxAttempts', /1 to 100/],
    [
      'a cap below the base',
      { policy: { retry: { baseSeconds: 9, capSeconds: 8 } } },
      'policy.retry.capSeconds',
      /at least/,
    ],
    [
      'retries that outlast the idempotency retention of the target',
      { policy: { retry: { maxAttempts: 4, baseSeconds: 1, capSeconds: 100 } } },
      'policy.retry',
      /at most 300 s.*4 × 100 s = 400 s/,
    ],
    ['a grant id that is not a UUID', { grantId: 'mine' }, 'grantId', /UUID, got "mine"/],
    ['a grant that does not exist', { grantId: '01890000-0000-7000-8000-000000000000' }, 'grantId', /of this project/],
    ['an owner without a type', { ownerSubject: 'alice' }, 'ownerSubject', /user:alice/],
    ['an owner with U+0000', { ownerSubject: 'user:a\0' }, 'ownerSubject', /expected/],
    ['a field that does not exist', { nmae: 'x' }, 'nmae', /no such field/],
    ['a secret (I8)', { apiKey: 'k' }, 'apiKey', /no such field/],
  ])('%s', async (_what, input, path, message) => {
    const { code, problems } = await create(input)

    expect(code).toBe('invalid_input')
    expect(problems.map((problem) => problem.path)).toEqual([path])
    expect(problems[0]?.message).toMatch(message)
  })
})

test('one error names every problem of an input', async () => {
  const { problems, message } = await create({
    name: '',
    cadence: { kind: 'cron', expression: 'x', timezone: 'nowhere' },
    target: { kind: 'fax' },
    grantId: 7,
    ownerSubject: '',
  })

  expect(problems.map(({ path }) => path)).toEqual([
    'name',
    'cadence.expression',
    'cadence.timezone',
    'target.kind',
    'grantId',
    'ownerSubject',
  ])
  expect(message).toMatch(/^name: expected .* \(and 5 more\)$/)
})

describe('hostile input is rejected with a CarillonError like any other invalid input', () => {
  test.each<[what: string, input: unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a string', 'schedule'],
    ['a number', 7],
    ['a list', []],
    ['a function', () => undefined],
    ['a date', new Date(0)],
    ['an object without a prototype', Object.create(null)],
    ['a circular target', { ...EVERY_MINUTE, target: circular }],
    ['a big integer', { ...EVERY_MINUTE, target: { kind: 'test', amount: 10n } }],
    ['an input nested 100,000 levels deep', { ...EVERY_MINUTE, target: { kind: 'test', deep } }],
    ['a target of two megabytes', { ...EVERY_MINUTE, target: { kind: 'test', text: 'x'.repeat(2_000_000) } }],
    [
      'an input with 100,000 fields',
      { ...EVERY_MINUTE, policy: Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [i, i])) },
    ],
    [
      'a getter that throws',
      {
        get name() {
          throw new Error('boo')
        },
      },
    ],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('boo')
          },
          ownKeys: () => {
            throw new Error('boo')
          },
        },
      ),
    ],
    [
      'a toJSON that throws',
      {
        ...EVERY_MINUTE,
        target: {
          kind: 'test',
          toJSON: () => {
            throw new Error('boo')
          },
        },
      },
    ],
    ['a cron expression of a megabyte', { ...EVERY_MINUTE, cadence: { ...CRON, expression: '* '.repeat(400_000) } }],
    [
      'an RRULE whose slots become sparse',
      {
        ...EVERY_MINUTE,
        cadence: {
          kind: 'rrule',
          rule: 'FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0;BYSECOND=0',
          start: '2026-01-01T00:00:00',
          timezone: 'UTC',
        },
      },
    ],
    ['a name that contains SQL', { ...EVERY_MINUTE, name: "'); drop table carillon.runs; --".repeat(10) }],
  ])('%s', async (_what, input) => {
    const { code, problems } = await refusal(() => pipeline.scheduler.create(CALLER, input as never))

    expect(code).toBe('invalid_input')
    expect(problems.length).toBeGreaterThan(0)
    expect(problems[0]?.message.length).toBeLessThan(500)
  })

  test.each<[what: string, edit: unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a circular target', { target: circular }],
    ['a state', { state: 'deleted' }],
    ['a tenant (I9)', { tenantId: 'evil' }],
  ])('as an edit: %s', async (_what, edit) => {
    const { code } = await refusal(() => pipeline.scheduler.edit(CALLER, scheduleId, edit as never, { revision: 1 }))

    expect(code).toBe('invalid_input')
  })
})

describe('an invalid argument is rejected with its name', () => {
  test.each<[what: string, call: () => Promise<unknown>, path: string]>([
    ['a page of no schedules', () => pipeline.scheduler.list(CALLER, { limit: 0 }), 'limit'],
    ['a page of too many schedules', () => pipeline.scheduler.list(CALLER, { limit: 201 }), 'limit'],
    ['a page of NaN schedules', () => pipeline.scheduler.list(CALLER, { limit: Number.NaN }), 'limit'],
    ['a page before an invalid id', () => pipeline.scheduler.list(CALLER, { before: "' or true" }), 'before'],
    ['a state that does not exist', () => pipeline.scheduler.list(CALLER, { state: 'asleep' as never }), 'state'],
    ['a part of a name with U+0000', () => pipeline.scheduler.list(CALLER, { nameContains: '\0' }), 'nameContains'],
    ['a kind with U+0000', () => pipeline.scheduler.list(CALLER, { targetKind: '\0' }), 'targetKind'],
    ['runs before NaN', () => pipeline.scheduler.listRuns(CALLER, scheduleId, { before: Number.NaN }), 'before'],
    [
      'runs before an instant beyond the last date',
      () => pipeline.scheduler.listRuns(CALLER, scheduleId, { before: 1e20 }),
      'before',
    ],
    ['an option that does not exist', () => pipeline.scheduler.list(CALLER, { max: 1 } as never), 'max'],
    ['too many runs', () => pipeline.scheduler.listRuns(CALLER, scheduleId, { limit: 1e9 }), 'limit'],
    ['a preview without a cadence', () => pipeline.scheduler.preview({ cadence: null }), 'cadence'],
    [
      'a preview from NaN',
      () => pipeline.scheduler.preview({ cadence: EVERY_MINUTE.cadence, from: Number.NaN }),
      'from',
    ],
    [
      'a preview from beyond the last date',
      () => pipeline.scheduler.preview({ cadence: EVERY_MINUTE.cadence, from: 1e20 }),
      'from',
    ],
    [
      'a preview of too many slots',
      () => pipeline.scheduler.preview({ cadence: EVERY_MINUTE.cadence, count: 101 }),
      'count',
    ],
  ])('%s', async (_what, call, path) => {
    const { code, problems } = await refusal(call)

    expect(code).toBe('invalid_input')
    expect(problems.map((problem) => problem.path)).toEqual([path])
  })

  test.each(['', 'x', "' or true --", '\0', '0'.repeat(1e5), '01890000-0000-7000-8000-00000000000', '../../etc'])(
    'an invalid id is not found: %j',
    async (id) => {
      const { scheduler } = pipeline

      expect(await refusal(() => scheduler.get(CALLER, id))).toMatchObject({ code: 'schedule_not_found' })
      expect(await refusal(() => scheduler.delete(CALLER, id))).toMatchObject({ code: 'schedule_not_found' })
      expect(await refusal(() => scheduler.runNow(CALLER, id))).toMatchObject({ code: 'schedule_not_found' })
      expect(await refusal(() => scheduler.getRun(CALLER, id))).toMatchObject({ code: 'run_not_found' })
      expect(await refusal(() => scheduler.cancel(CALLER, id))).toMatchObject({ code: 'run_not_found' })
    },
  )
})
