import { createHash } from 'node:crypto'

import { API_PREFIX, operationIds } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { exchange } from './raw-exchange.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp({ renderMetrics: async () => 'up 1\n' })
afterAll(() => world[Symbol.asyncDispose]())

const get = (url: string) => world.request('GET', url, { key: null })

describe('health checks', () => {
  test('health, readiness and metrics need no key', async () => {
    const [health, readiness, metrics] = [await get('/healthz'), await get('/readyz'), await get('/metrics')]

    expect(health.json()).toEqual({ status: 'ok' })
    expect(readiness.json()).toEqual({ status: 'ready' })
    expect(metrics.body).toBe('up 1\n')
    expect(metrics.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  test('health answers HEAD requests', async () => {
    const answer = await world.request('HEAD', '/healthz', { key: null })

    expect([answer.statusCode, answer.body]).toEqual([200, ''])
  })

  test('readiness answers 503 with the reasons while the server is not ready', async () => {
    await using other = await createTestApp({
      readiness: async () => ['the database cannot be used', 'the worker has not started'],
    })

    const answer = await other.request('GET', '/readyz', { key: null })

    expect(answer.json()).toMatchObject({
      status: 503,
      code: 'unavailable',
      detail: 'the database cannot be used; the worker has not started',
    })
    expect(answer.headers['retry-after']).toBe('1')
  })
})

describe('the reference of the API', () => {
  test('the OpenAPI document contains every operation, and the version of the server', async () => {
    const answer = await get('/openapi.json')

    const document = answer.json<{ openapi: string; info: object; servers: unknown; paths: Record<string, object> }>()
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '0.0.0-test' }, servers: [{ url: '/' }] })
    const described = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map((operation: { operationId: string }) => operation.operationId),
    )
    expect(described.toSorted()).toEqual(operationIds.toSorted())
    expect(Object.keys(document.paths).every((path) => path.startsWith(`${API_PREFIX}/`))).toBe(true)
  })

  test('the page of the reference loads nothing from other hosts, and may run only its one script', async () => {
    const page = await get('/docs/')

    const inline = /<script type="text\/javascript">([^]*?)<\/script>/.exec(page.body)?.[1] ?? ''
    const hash = createHash('sha256').update(inline).digest('base64')
    expect(page.headers['content-type']).toMatch(/^text\/html/)
    expect(page.body).toContain('"/openapi.json"')
    expect(page.body).not.toMatch(/https?:\/\//)
    expect(page.headers['content-security-policy']).toContain(`script-src 'self' 'sha256-${hash}';`)
    expect(page.headers['content-security-policy']).not.toMatch(/script-src[^;]*unsafe/)
    const script = await get('/docs/js/scalar.js')
    expect(script.headers['content-type']).toMatch(/^application\/javascript/)
    expect(script.body).toContain('createApiReference')
  })

  test('/docs redirects to /docs/ on the same host', async () => {
    const answer = await get('/docs')

    expect([answer.statusCode, answer.headers.location]).toEqual([301, '/docs/'])
  })

  test('an invalid Host header is refused', async () => {
    const url = await world.listen()

    const answer = await exchange(url, 'GET /docs/ HTTP/1.1\r\nHost: [ x\r\nConnection: close\r\n\r\n')

    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body)).toMatchObject({ errors: [{ field: 'Host' }] })
  })
})

test('every answer has the security headers for browsers, and forbids framing', async () => {
  for (const url of ['/healthz', '/docs/', '/nothing', '/api/v1/schedules', '/openapi.json']) {
    const { headers } = await get(url)

    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'") as unknown,
    })
    expect(headers['content-security-policy']).toContain("default-src 'self'")
    expect(headers['strict-transport-security']).toBeUndefined()
    expect(headers['x-powered-by']).toBeUndefined()
  }
})
