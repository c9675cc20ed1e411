import { createOpenApi } from '@carillon/api'
import { createHttpTarget } from '@carillon/http'
import formats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, describe, expect, test } from 'vitest'

import { EchoTarget } from './echo-target.ts'
import { DIGEST } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly minimum?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
}

// The document has the type of any JSON. These are the parts that this test reads.
const document = createOpenApi({ version: '0.1.0', url: '/' }) as unknown as {
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}
const ajv = new Ajv2020({ strict: false, allErrors: true })
// `ajv-formats` is CommonJS: its function is the `default` of its default export.
formats.default(ajv)
ajv.addSchema(document, 'openapi')

function faultsUnder(component: string, value: unknown): unknown {
  const validate = ajv.compile({ $ref: `openapi#/components/schemas/${component}` })
  return validate(value) ? [] : validate.errors
}

const world = await createTestApp({
  clock: clockAt('2026-03-02T06:00:00Z'),
  targets: [createHttpTarget({ allowedHosts: ['127.0.0.1', 'digest.internal'] }), new EchoTarget()],
})
afterAll(() => world[Symbol.asyncDispose]())

const GRANT = (await world.admin.grants.create({ scopes: ['http:dispatch:*'] })).id

/** Each is one change of a valid schedule. Together they use every field. */
const ACCEPTED: readonly object[] = [
  {},
  { grantId: null },
  { grantId: GRANT },
  { ownerSubject: 'user:alice' },
  { cadence: { kind: 'once', at: '2026-12-24T18:00:00Z' } },
  { cadence: { kind: 'once', at: '2026-12-24T18:00:00[Europe/Madrid]' } },
  { cadence: { kind: 'once', at: '2026-10-25T02:30:00', timezone: 'Europe/Madrid', dst: { fold: 'second' } } },
  { cadence: { kind: 'cron', expression: '@daily' } },
  { cadence: { kind: 'interval', every: 'PT15M', maxRuns: 1_000_000 } },
  {
    cadence: {
      kind: 'cron',
      expression: '0 9 * * mon-fri',
      startAt: '2026-04-01T00:00:00',
      endAt: '2027-01-01T00:00:00Z',
    },
  },
  {
    cadence: {
      kind: 'cron',
      expression: '30 2 * * *',
      timezone: 'Europe/Madrid',
      dst: { gap: 'skip', fold: 'both' },
      maxRuns: 10_000,
    },
  },
  {
    cadence: { kind: 'rrule', rule: 'FREQ=MONTHLY;BYDAY=1MO', start: '2026-03-05T09:00:00', timezone: 'Europe/Madrid' },
  },
  {
    cadence: { kind: 'rrule', rule: 'FREQ=DAILY', exdates: ['2026-03-04T06:00:00'], rdates: ['2026-03-04T12:00:00Z'] },
  },
  { cadence: { kind: 'rrule', rule: 'DTSTART:20260305T090000Z\nRRULE:FREQ=DAILY;COUNT=3' } },
  { cadence: { kind: 'interval', every: 'PT15M', startAt: '2026-03-03T00:00:00Z', maxRuns: 12 } },
  { cadence: { kind: 'interval', every: 900 } },
  { cadence: { kind: 'interval', every: 'P1M', anchor: '2026-01-31T09:00:00', timezone: 'Europe/Madrid' } },
  { cadence: { kind: 'interval', every: 'R5/2026-04-01T09:00:00Z/P1M' } },
  { cadence: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 0, timeOfDay: '09:00' } },
  { cadence: { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 6, timeOfDay: '23:59', anchor: '2026-03-07' } },
  { cadence: { kind: 'frequency', frequency: 'monthly', dayOfWeek: 1, timeOfDay: '00:00', timezone: 'Asia/Tokyo' } },
  { target: { kind: 'http', url: 'http://127.0.0.1/', method: 'GET', headers: { 'x-a': 'b' }, timeoutSeconds: 300 } },
  { target: { kind: 'http', url: 'http://127.0.0.1/', payload: null } },
  { target: { kind: 'http', url: 'http://127.0.0.1/', payload: [1, 'two', { three: false }] } },
  { target: { kind: 'echo', whatever: { it: ['takes'] } } },
  { policy: {} },
  { policy: { overlap: 'queue', missed: 'run_once', startingDeadlineSeconds: 604_800, spreadSeconds: 3600 } },
  { policy: { overlap: 'allow', retry: {}, autoPauseThreshold: 0 } },
  { policy: { overlap: 'replace', retry: { maxAttempts: 1 }, autoPauseThreshold: 3 } },
  { policy: { retry: { maxAttempts: 5, baseSeconds: 1, capSeconds: 60 }, autoPauseThreshold: 100, spreadSeconds: 0 } },
]

describe('schedules that core accepts', () => {
  test.each(ACCEPTED)('a schedule that core accepts with %j matches the OpenAPI document', async (change) => {
    const input = { ...DIGEST, ...change }

    const answer = await world.request('POST', '/api/v1/schedules', { body: input })

    expect(answer.statusCode, answer.body).toBe(201)
    expect(faultsUnder('ScheduleInput', input)).toEqual([])
    expect(faultsUnder('Schedule', answer.json())).toEqual([])
    if (!('ownerSubject' in change)) expect(faultsUnder('ScheduleEdit', change)).toEqual([])
  })
})

describe('values that the OpenAPI document shows', () => {
  test('the example of a schedule is accepted', async () => {
    const [example] = schemaOf('ScheduleInput').examples ?? []

    const answer = await world.request('POST', '/api/v1/schedules', { body: example })

    expect(answer.statusCode, answer.body).toBe(201)
  })

  test.each(['OnceCadence', 'CronCadence', 'RRuleCadence', 'IntervalCadence', 'FrequencyCadence'])(
    'the examples in %s are accepted',
    async (component) => {
      const answer = await world.request('POST', '/api/v1/cadence/preview', {
        body: { cadence: exampleOf({ $ref: component }) },
      })

      expect(answer.statusCode, answer.body).toBe(200)
    },
  )

  test.each([
    ['HttpTarget', (target: unknown) => ['/api/v1/schedules', { ...DIGEST, target }] as const],
    ['GrantInput', (grant: unknown) => ['/api/v1/grants', grant] as const],
    ['KeyInput', (key: unknown) => ['/api/v1/keys', { ...(key as object), project: 'default' }] as const],
  ])('the examples in %s are accepted', async (component, toRequest) => {
    const [url, body] = toRequest(exampleOf({ $ref: component }))

    const answer = await world.request('POST', url, { body })

    expect(answer.statusCode, answer.body).toBe(201)
  })

  test('both ends of every range in a policy are accepted, and the values beyond them are refused', async () => {
    const { properties = {} } = schemaOf('PolicyInput')
    const ranges = Object.entries(properties).filter(([, { minimum }]) => minimum !== undefined) as [
      string,
      { minimum: number; maximum: number },
    ][]

    expect(ranges.map(([name]) => name)).toEqual(['startingDeadlineSeconds', 'spreadSeconds'])
    for (const [name, { minimum, maximum }] of ranges) {
      for (const [value, status] of [
        [minimum - 1, 400],
        [minimum, 201],
        [maximum, 201],
        [maximum + 1, 400],
      ]) {
        const answer = await world.request('POST', '/api/v1/schedules', {
          body: { ...DIGEST, policy: { [name]: value } },
        })

        expect(answer.statusCode, `${name} ${value}: ${answer.body}`).toBe(status)
      }
    }
  })
})

function schemaOf(component: string): JsonSchema {
  const schema = document.components.schemas[component]
  if (schema === undefined) throw new Error(`${component} is not documented`)
  return schema
}

/** A value of a schema: its example, or an object of its required fields and of its fields with an example. */
function exampleOf(schema: JsonSchema): unknown {
  if (schema.$ref !== undefined) return exampleOf(schemaOf(schema.$ref.split('/').at(-1) ?? ''))
  if (schema.examples !== undefined) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.minimum !== undefined) return schema.minimum
  const { properties = {}, required = [] } = schema
  const shown = Object.entries(properties).filter(
    ([name, { examples }]) => required.includes(name) || examples !== undefined,
  )
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property)]))
}
