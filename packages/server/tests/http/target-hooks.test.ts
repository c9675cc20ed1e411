import type { ScheduleInput } from '@carillon/api'
import type { Target } from '@carillon/core'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'

import { createTestApp } from './test-app.ts'

/** A kind whose hooks answer as the schedule asks them to. */
const FORECAST: Target = {
  kind: 'forecast',
  schema: z.looseObject({ kind: z.literal('forecast') }),
  policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
  requiredScope: () => 'forecast:call:it',
  timeoutMs: () => 1000,
  dispatch: async () => ({ kind: 'cancelled' }),
  checkIn: async (_tx, { spec }) => {
    const { mood } = spec as { mood?: string }
    if (mood === 'broken') throw new Error('the secret of the module')
    return mood === 'bad' ? [{ path: 'target.mood', message: 'expected a good mood, got bad' }] : []
  },
  preview: async (_tx, _draft, slots) => ({ cost: slots.length }),
}

const world = await createTestApp({ targets: [FORECAST] })
afterAll(() => world[Symbol.asyncDispose]())

const scheduleOf = (mood: string): ScheduleInput => ({
  name: mood,
  cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' },
  target: { kind: 'forecast', mood },
})
const { id } = await world.admin.schedules.create(scheduleOf('good'))

test.each([
  ['POST', '/schedules', {}],
  ['POST', '/schedules/preview', {}],
  ['POST', '/schedules/batch', { isBatch: true }],
  ['POST', '/schedules/batch/preview', { isBatch: true }],
  ['PATCH', `/schedules/${id}`, {}],
  ['PATCH', `/schedules/${id}?dryRun=true`, {}],
])(
  'a hook that throws fails %s %s with target_hook_failed, and its text stays in the log',
  async (method, path, options) => {
    const { isBatch = false } = options as { isBatch?: boolean }
    const { name: _name, ...edit } = scheduleOf('broken')
    const body = isBatch ? { schedules: [scheduleOf('broken')] } : method === 'PATCH' ? edit : scheduleOf('broken')

    const answer = await world.request(method, `/api/v1${path}`, { body, headers: { 'if-match': '"1"' } })

    expect(answer.json()).toMatchObject({
      status: 500,
      code: 'target_hook_failed',
      detail: 'the target kind forecast could not check this schedule: checkIn failed',
    })
    expect(answer.body).not.toContain('the secret')
    expect(JSON.stringify(world.log.at(-1))).toContain('the secret of the module')
  },
)

test('a hook refuses a field as any other check does', async () => {
  const answer = await world.request('POST', '/api/v1/schedules', { body: scheduleOf('bad') })

  expect(answer.json()).toMatchObject({
    code: 'invalid_input',
    errors: [{ field: 'target.mood', message: 'expected a good mood, got bad' }],
  })
})

test('previews of creates and edits show what the kind adds, and nothing for a kind that adds nothing', async () => {
  const { preview } = await world.admin.schedules.preview(scheduleOf('good'))
  const edited = await world.admin.schedules.planEdit(id, { name: 'other' })
  const http = await world.admin.schedules.preview({
    ...scheduleOf('good'),
    target: { kind: 'http', url: 'http://127.0.0.1:9000/' },
  })

  expect([preview, edited.preview]).toEqual([{ cost: 5 }, { cost: 5 }])
  expect(http).not.toHaveProperty('preview')
})
