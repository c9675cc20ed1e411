import { afterAll, describe, expect, test } from 'vitest'

import { createTestApp } from './test-app.ts'

const world = await createTestApp({ limits: { requestsPerMinute: 3 } })
const { request } = world
afterAll(() => world[Symbol.asyncDispose]())

const LIST = '/api/v1/schedules'

describe('requests are limited', () => {
  test('per key, whatever is asked; the answers count down, and the refusal says when to come back', async () => {
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
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(refused?.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect(refused?.json()).toMatchObject({ status: 429, code: 'rate_limited' })
  })

  test('of one key without harm to another', async () => {
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:b', role: 'member' })

    expect((await request('GET', LIST, { key })).statusCode).toBe(200)
  })

  test('per address where there is no valid key, also where there is nothing', async () => {
    const answers = []
    for (let count = 0; count < 601; count += 1) {
      const url = count % 2 === 0 ? LIST : '/nothing'
      answers.push(await request('GET', url, { key: `guess-${count}` }))
    }

    expect(new Set(answers.slice(0, 600).map(({ statusCode }) => statusCode))).toEqual(new Set([401, 404]))
    expect(answers.at(-1)?.json()).toMatchObject({ status: 429, code: 'rate_limited' })
  })

  test('but never for whoever watches the process', async () => {
    for (const url of ['/healthz', '/readyz', '/metrics']) {
      const answer = await request('GET', url, { key: null })

      expect(answer.statusCode).toBe(200)
      expect(answer.headers['ratelimit-limit']).toBeUndefined()
    }
  })
})
