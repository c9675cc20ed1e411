import { echoTarget, type Target } from '@carillon/core'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { createTestApp } from './test-app.ts'

/** A kind with everything that a list shows. */
const TICKET: Target = {
  kind: 'ticket',
  title: 'Ticket of a queue',
  example: { kind: 'ticket', queue: 'north' } as { readonly kind: string },
  scopePattern: 'ticket:open:<queue>',
  schema: z.strictObject({ kind: z.literal('ticket'), queue: z.string().default('north') }),
  policy: { missed: 'run_once', retry: { maxAttempts: 2, baseSeconds: 5, capSeconds: 60 } },
  requiredScope: () => 'ticket:open:north',
  timeoutMs: () => 1000,
  dispatch: async () => ({ kind: 'cancelled' }),
  settled: async () => undefined,
}
/** A kind that says nothing about itself, with a schema that JSON cannot express. */
const BARE: Target = {
  kind: 'bare',
  schema: z.custom<{ readonly kind: string }>(() => true),
  policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
  requiredScope: () => 'bare:call:it',
  timeoutMs: () => 1000,
  dispatch: async () => ({ kind: 'cancelled' }),
}

const world = await createTestApp({ targets: [echoTarget, TICKET, BARE] })
afterAll(() => world[Symbol.asyncDispose]())

const { items } = await world.admin.targetKinds.list()
const kindOf = (name: string) => items.find(({ kind }) => kind === name)

describe('the list of target kinds', () => {
  test('has every kind that the server accepts, sorted by name, each with a title', () => {
    expect(items.map(({ kind, title }) => [kind, title])).toEqual([
      ['bare', 'bare'],
      ['echo', 'Echo'],
      ['http', 'HTTP request'],
      ['ticket', 'Ticket of a queue'],
    ])
  })

  test('has the JSON Schema of the whole target, as a caller writes it', () => {
    expect(kindOf('ticket')?.schema).toEqual({
      type: 'object',
      properties: { kind: { type: 'string', const: 'ticket' }, queue: { type: 'string', default: 'north' } },
      required: ['kind'],
      additionalProperties: false,
    })
    expect(kindOf('http')?.schema).toMatchObject({
      required: ['kind', 'url'],
      properties: {
        headers: { type: 'object' },
        payload: { description: expect.stringContaining('unchanged') as string },
      },
    })
    expect(kindOf('bare')?.schema).toEqual({})
  })

  test('has the policy that a schedule gets, apart for cadences where it differs', () => {
    const recurring = ['cron', 'rrule', 'interval', 'frequency']

    expect(
      kindOf('http')?.policies.map(({ cadenceKinds, policy: { missed } }) => [missed, cadenceKinds.toSorted()]),
    ).toEqual(
      expect.arrayContaining([
        ['run_once', ['once']],
        ['skip', recurring.toSorted()],
      ]),
    )
    expect(kindOf('ticket')?.policies).toHaveLength(1)
    expect(kindOf('ticket')?.policies[0]?.policy).toMatchObject({ missed: 'run_once', retry: { maxAttempts: 2 } })
  })

  test('says the pattern of the scope, whether the kind has hooks, and an example that a create accepts', async () => {
    expect(kindOf('ticket')).toMatchObject({ scopePattern: 'ticket:open:<queue>', hasHooks: true })
    expect(kindOf('bare')).toMatchObject({ scopePattern: null, hasHooks: false, example: null })
    for (const kind of ['echo', 'ticket']) {
      const target = kindOf(kind)?.example as { kind: string }
      const cadence = { kind: 'interval', every: 'PT1H' } as const
      const created = await world.admin.schedules.create({ name: kind, cadence, target })
      expect(created.target).toEqual(target)
    }
  })
})
