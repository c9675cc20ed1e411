import type { Problem } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp({ clock: clockAt('2026-03-02T06:00:00Z') })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

const CREATE = '/api/v1/schedules'
let url: string

beforeAll(async () => {
  url = `${CREATE}/${(await admin.schedules.create(DIGEST)).id}`
})

const HTTP = { kind: 'http', url: 'http://127.0.0.1/' }

describe('hostile input in a body', () => {
  test.each<[what: string, body: object]>([
    ['U+0000 in a name', { name: 'a\0b' }],
    ['half a character in a name', { name: '\ud800' }],
    ['U+0000 in a payload', { target: { ...HTTP, payload: { a: ['\0'] } } }],
    ['U+0000 in a key of a payload', { target: { ...HTTP, payload: { 'a\0': 1 } } }],
    ['half a character in a payload', { target: { ...HTTP, payload: '\udfff' } }],
    ['U+0000 in a header', { target: { ...HTTP, headers: { a: '\0' } } }],
    ['U+0000 in a kind', { target: { kind: '\0' } }],
    ['a kind that every object has', { target: { kind: 'constructor' } }],
    ['a cadence kind that every object has', { cadence: { kind: 'toString' } }],
    ['a number that is too large', { policy: { spreadSeconds: 1e308 } }],
    ['a negative number', { policy: { retry: { maxAttempts: -1 } } }],
    ['a list instead of an object', { policy: [] }],
    ['a field that every object has', { constructor: { prototype: { x: 1 } } }],
    ['half a character in a subject', { ownerSubject: 'user:\ud800' }],
    ['U+0000 in an expression', { cadence: { kind: 'cron', expression: '0 9 * * \0' } }],
    ['a time zone that is a path', { cadence: { ...(DIGEST.cadence as object), timezone: '../../etc/passwd' } }],
    ['a date that does not exist', { cadence: { kind: 'once', at: '+275760-09-13T00:00:00Z' } }],
    ['a rule without slots', { cadence: { kind: 'rrule', rule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30' } }],
    ['an invalid grant id', { grantId: '\0' }],
    ['an unknown grant id', { grantId: '01890000-0000-7000-8000-000000000000' }],
  ])('%s is refused with a problem that names the field', async (_what, change) => {
    const answer = await request('POST', CREATE, { body: { ...DIGEST, ...change } })

    expect(answer.statusCode, answer.body).toBe(400)
    const [first] = answer.json<Problem>().errors
    expect(first?.field.split('.')[0]).toBe(Object.keys(change)[0])
    expect(first?.message).toMatch(/expected/i)
  })

  test('a name in any script is stored unchanged', async () => {
    const name = '\u202eкурант 鐘 🔔 \u200f'

    expect((await admin.schedules.create({ ...DIGEST, name })).name).toBe(name.trim())
  })

  test.each([
    ['keys', { project: '../x', subject: 'user:a', role: 'admin' }, 'project'],
    ['keys', { project: 'x\0', subject: 'user:a', role: 'admin' }, 'project'],
    ['keys', { tenant: '', project: 'x', subject: 'user:a', role: 'admin' }, 'tenant'],
    ['keys', { project: 'x', subject: 'nobody', role: 'admin' }, 'subject'],
    ['keys', { project: 'x', subject: 'user:a', role: 'owner' }, 'role'],
    ['keys', { project: 'x', subject: 'user:a', role: 'admin', constructor: 1 }, 'constructor'],
    ['grants', { scopes: ['\0'] }, 'scopes.0'],
    ['grants', { scopes: [] }, 'scopes'],
    ['grants', { scopes: Array.from({ length: 51 }, () => 'a:b:c') }, 'scopes'],
    ['grants', { scopes: ['a:b:c'], expiresAt: 1_900_000_000_000 }, 'expiresAt'],
    ['grants', { scopes: ['a:b:c'], expiresAt: '2026-03-02T05:00:00Z' }, 'expiresAt'],
    ['grants', { scopes: ['a:b:c'], billingAccountId: '\ud800' }, 'billingAccountId'],
    ['grants', { scopes: ['a:b:c'], subject: 7 }, 'subject'],
    ['cadence/preview', { cadence: DIGEST.cadence, count: 101 }, 'count'],
    ['cadence/preview', { cadence: DIGEST.cadence, from: 'now' }, 'from'],
    ['cadence/preview', { cadence: { kind: 'cron', expression: '61 * * * *' } }, 'cadence.expression'],
    ['cadence/preview', {}, 'cadence'],
  ])('POST /%s %j is refused with a problem that names %s', async (path, body, field) => {
    const answer = await request('POST', `/api/v1/${path}`, { body })

    expect(answer.statusCode, answer.body).toBe(400)
    expect(answer.json<Problem>().errors[0]).toMatchObject({
      field,
      message: expect.stringMatching(/expected/) as unknown,
    })
  })

  test.each([
    ['secrets/bad%20name', { value: '' }, 'value'],
    ['members/alice', { role: 'owner' }, 'role'],
    ['tenants/_platform', { minimumSeconds: 0 }, 'minimumSeconds'],
  ])('PUT /%s %j is refused with a problem that names the id in the path and %s', async (path, body, field) => {
    const answer = await request('PUT', `/api/v1/${path}`, { body })

    expect(answer.statusCode, answer.body).toBe(400)
    expect(answer.json<Problem>().errors.map((error) => error.field)).toEqual(['path.id', field])
  })
})

describe('hostile input in a query', () => {
  const edges = ['1970-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999+00:00']

  test.each(edges)('slots and previews from %s are computed', async (from) => {
    const slots = await request('GET', `${url}/slots?from=${encodeURIComponent(from)}&limit=1000`)
    expect(slots.statusCode, slots.body).toBe(200)

    for (const cadence of [
      DIGEST.cadence,
      { kind: 'rrule', rule: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29' },
      { kind: 'interval', every: 'P1M' },
      { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00' },
    ]) {
      const preview = await request('POST', '/api/v1/cadence/preview', { body: { cadence, from, count: 100 } })
      expect(preview.statusCode, preview.body).toBe(200)
    }
  })

  test.each(edges)('skipping %s, which is not a slot, is refused', async (scheduledFor) => {
    for (const what of ['skip', 'restore']) {
      const answer = await request('POST', `${url}/${what}`, { body: { scheduledFor } })
      expect(answer.statusCode, answer.body).toBe(422)
    }
  })

  test.each(['q', 'targetKind', 'cursor', 'state', 'limit'])(
    'a query with invalid bytes in %s does not cause a server error',
    async (name) => {
      for (const value of ['%00', '%ff', '%', '%ed%a0%80', '%F0%9F%94%94', "'%20or%201=1--", '[]', 'x'.repeat(8000)]) {
        const answer = await request('GET', `${CREATE}?${name}=${value}`)
        expect(answer.statusCode, `${value}: ${answer.body}`).toBeLessThan(500)
      }
    },
  )

  test('a project of another caller is not found, whatever its name', async () => {
    for (const id of ['other', '%00', '__proto__', 'DEFAULT', '%20default']) {
      const answer = await request('DELETE', `/api/v1/projects/${id}/schedules`)
      expect(answer.json()).toMatchObject({ status: 404, code: 'project_not_found' })
    }
  })
})
