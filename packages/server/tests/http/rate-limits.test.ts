import { afterAll, describe, expect, test, vi } from 'vitest'

import { TenantRates } from '../../src/http/limits.ts'
import { ManualClock } from './manual-clock.ts'
import { createTestApp } from './test-app.ts'

// The limiter counts by the minute of the system's clock. The clock stands still, so that a slow machine sees one minute.
vi.useFakeTimers({ toFake: ['Date'] })

const world = await createTestApp({ requestsPerMinute: 3 })
const { request } = world
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  vi.useRealTimers()
})

const LIST = '/api/v1/schedules'
const NOTHING_SAID = {
  maxSchedulesPerProject: null,
  maxSchedulesPerUser: null,
  minimumSeconds: null,
  allowedHosts: null,
  updatedBy: null,
  updatedAt: null,
}

describe('the rate limit', () => {
  test('counts the requests of a key over all operations, each answer shows what is left, and the refusal has a Retry-After', async () => {
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })

    const answers = [
      await request('GET', LIST, { key }),
      await request('GET', `${LIST}/nothing`, { key }),
      await request('POST', LIST, { key, body: '{' }),
      await request('GET', LIST, { key }),
    ]

    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 404, 403, 429])
    expect(answers.map(({ headers }) => headers['ratelimit-remaining'])).toEqual(['2', '1', '0', '0'])
    const [, , , refused] = answers
    expect(refused?.headers).toMatchObject({
      'ratelimit-limit': '3',
      'content-type': expect.stringMatching(/problem\+json/) as unknown,
    })
    expect(refused?.headers['retry-after']).toBe('60')
    expect(refused?.json()).toMatchObject({ status: 429, code: 'rate_limited' })
  })

  test('of one key does not affect another key', async () => {
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:b', role: 'member' })

    expect((await request('GET', LIST, { key })).statusCode).toBe(200)
  })

  test('counts requests without a valid key per address, unknown paths included', async () => {
    const answers = []
    for (let count = 0; count < 601; count += 1) {
      const url = count % 2 === 0 ? LIST : '/nothing'
      answers.push(await request('GET', url, { key: `guess-${count}` }))
    }

    expect(new Set(answers.slice(0, 600).map(({ statusCode }) => statusCode))).toEqual(new Set([401, 404]))
    expect(answers.at(-1)?.json()).toMatchObject({ status: 429, code: 'rate_limited' })
  })

  test('never applies to health checks and metrics', async () => {
    for (const url of ['/healthz', '/readyz', '/metrics']) {
      const answer = await request('GET', url, { key: null })

      expect(answer.statusCode).toBe(200)
      expect(answer.headers['ratelimit-limit']).toBeUndefined()
    }
  })
})

describe('the rate limit of a tenant', () => {
  const clock = new ManualClock()

  test('applies to each key of the tenant within ten seconds, and to no other tenant', async () => {
    await using other = await createTestApp({ clock, requestsPerMinute: 100 })
    const keyOf = async (tenant: string, subject: string): Promise<string> =>
      (await other.admin.keys.create({ tenant, project: 'web', subject, role: 'member' })).key
    const [alice, bob, carol] = [
      await keyOf('acme', 'user:alice'),
      await keyOf('acme', 'user:bob'),
      await keyOf('umbrella', 'user:carol'),
    ]
    const limitOf = async (key: string) => {
      const { statusCode, headers } = await other.request('GET', LIST, { key })
      return [statusCode, headers['ratelimit-limit'], headers['ratelimit-remaining']]
    }

    expect(await limitOf(alice)).toEqual([200, '100', '99'])
    await other.admin.tenants.put('acme', { requestsPerMinute: 2 })
    expect(await limitOf(alice)).toEqual([200, '100', '98'])
    clock.advance(10_000)

    expect(await limitOf(alice)).toEqual([429, '2', '0'])
    expect([await limitOf(bob), await limitOf(bob), await limitOf(bob)]).toEqual([
      [200, '2', '1'],
      [200, '2', '0'],
      [429, '2', '0'],
    ])
    expect(await limitOf(carol)).toEqual([200, '100', '99'])
  })

  test('does not apply to the admin key, which can raise it again', async () => {
    await using other = await createTestApp({ clock })
    await other.admin.tenants.put('default', { requestsPerMinute: 1 })
    // All cached limits have expired now.
    clock.advance(10_000)

    for (let count = 0; count < 3; count += 1) expect((await other.request('GET', LIST)).statusCode).toBe(200)
  })

  test('is read once for many requests, and cached for the last thousand tenants', async () => {
    const asked: string[] = []
    const tenants = {
      get: async (tenantId: string) => {
        asked.push(tenantId)
        return { ...NOTHING_SAID, tenantId, requestsPerMinute: 7 }
      },
    }
    const rates = new TenantRates({ tenants, clock })

    expect(await Promise.all([rates.find('a'), rates.find('a')])).toEqual([7, 7])
    for (let count = 0; count < 999; count += 1) await rates.find(`b${count}`)
    await rates.find('a')
    await rates.find('c')
    await rates.find('a')
    await rates.find('b0')

    expect(asked.filter((tenantId) => tenantId === 'a')).toHaveLength(1)
    expect(asked.filter((tenantId) => tenantId === 'b0')).toHaveLength(2)
  })

  test('is read again after a failed query', async () => {
    let isAway = true
    const get = async (tenantId: string) => {
      if (isAway) throw new Error('the database is away')
      return { ...NOTHING_SAID, tenantId, requestsPerMinute: 7 }
    }
    const rates = new TenantRates({ tenants: { get }, clock })

    await expect(rates.find('a')).rejects.toThrow('away')
    isAway = false

    expect(await rates.find('a')).toBe(7)
  })
})
