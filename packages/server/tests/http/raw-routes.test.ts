import { REQUEST_BODY_MAX_BYTES } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import type { ServedModule } from '../../src/http/served-operations.ts'
import { createTestApp } from './test-app.ts'
import { createTicketModule } from './ticket-module.ts'

type RawRoute = ServedModule['rawRoutes'][number]

const world = await createTestApp({ modules: [createTicketModule()] })
afterAll(() => world[Symbol.asyncDispose]())

function withRoute(handle: RawRoute['handle'], method: RawRoute['method'] = 'POST') {
  const rawRoutes = [{ method, path: '/raw', handle }]
  return createTestApp({ modules: [createTicketModule({ rawRoutes })] })
}

describe('a raw route', () => {
  test('gets the request with its parameters, headers and body of any type, and sends its own answer', async () => {
    const headers = { 'content-type': 'application/x-custom', 'x-secret': 's' }
    const answer = await world.request('POST', '/bots/a%20b/webhook?x=1', { key: null, headers, body: '<any text>' })

    expect(answer.statusCode).toBe(202)
    expect(answer.json()).toEqual({ bot: 'a b', text: '<any text>', secret: 's' })
    expect(answer.headers['x-ticket']).toBe('seen')
  })

  test('gets bytes as they are, and no body', async () => {
    const seen: Uint8Array[] = []
    await using other = await withRoute(async (request) => {
      seen.push(new Uint8Array(await request.arrayBuffer()))
      return new Response(null, { status: 204 })
    })
    const bytes = Buffer.from([0, 255, 10])

    const answers = [
      await other.request('POST', '/raw', { headers: { 'content-type': 'image/png' }, body: bytes }),
      await other.request('POST', '/raw'),
    ]

    expect(answers.map(({ statusCode, body }) => [statusCode, body])).toEqual([
      [204, ''],
      [204, ''],
    ])
    expect(seen.map((each) => [...each])).toEqual([[0, 255, 10], []])
  })

  test('gets the query and the method', async () => {
    await using other = await withRoute(async (request) => {
      const { search } = new URL(request.url)
      return new Response(`${request.method} ${search}`)
    }, 'GET')

    const answer = await other.request('GET', '/raw?a=1&b=%2F', { headers: { host: 'bad host' } })

    expect(answer.body).toBe('GET ?a=1&b=%2F')
  })

  test('is not called with a body over the limit', async () => {
    let calls = 0
    await using other = await withRoute(async () => {
      calls += 1
      return new Response('')
    })

    const answer = await other.request('POST', '/raw', { body: 'x'.repeat(REQUEST_BODY_MAX_BYTES + 1) })

    expect(answer.json()).toMatchObject({ code: 'body_too_large' })
    expect(calls).toBe(0)
  })

  test('is limited per address', async () => {
    await using small = await createTestApp({ modules: [createTicketModule()], requestsPerMinute: 1 })
    const ask = () => small.request('POST', '/bots/a/webhook', { body: 'x' })

    const statuses = [(await ask()).statusCode, (await ask()).statusCode]

    expect(statuses).toEqual([202, 429])
  })

  test('gets the security headers and a log line with its pattern, and is not cached', async () => {
    const answer = await world.request('POST', '/bots/secret-bot/webhook', { body: 'x' })

    expect(answer.headers).toMatchObject({ 'x-frame-options': 'DENY', 'cache-control': 'no-store' })
    expect(world.log.at(-1)).toMatchObject({ route: '/bots/:bot/webhook', status: 202, method: 'POST' })
    expect(JSON.stringify(world.log.at(-1))).not.toContain('secret-bot')
  })

  test('that throws is answered with a problem', async () => {
    await using other = await withRoute(() => Promise.reject(new Error('the secret of the module')))

    const answer = await other.request('POST', '/raw', { body: 'x' })

    expect(answer.json()).toMatchObject({ status: 500, code: 'internal' })
    expect(answer.body).not.toContain('the secret')
  })

  test('answers another method with 405', async () => {
    const answer = await world.request('GET', '/bots/a/webhook')

    expect(answer.json()).toMatchObject({ code: 'method_not_allowed' })
  })
})
