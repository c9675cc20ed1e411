import { startHttpServer } from '@carillon/outbound/testing'
import { describe, expect, test } from 'vitest'

import manifest from '../package.json' with { type: 'json' }
import { attemptAt, dispatchTo, httpTarget, RUN_ID, SLOT } from './attempt.ts'

async function received(input: Record<string, unknown>, attempts: readonly number[] = [1]) {
  await using server = await startHttpServer((response) => response.end())
  await using target = httpTarget()
  for (const attempt of attempts) {
    await dispatchTo(target, { ...input, url: `${server.origin}/run?a=1&b=%20` }, { attempt })
  }
  return { requests: server.requests, port: server.port }
}

describe('a request', () => {
  test('carries exactly these headers', async () => {
    const { requests, port } = await received({ payload: { list: 'a' }, headers: { 'X-Team': 'digest' } }, [3])

    const [request] = requests
    const { traceparent, ...others } = request?.headers ?? {}
    expect(others).toEqual({
      host: `127.0.0.1:${port}`,
      connection: 'keep-alive',
      'content-length': '12',
      'content-type': 'application/json',
      'user-agent': `Carillon/${manifest.version}`,
      'x-team': 'digest',
      'idempotency-key': 'sched:01980000-0000-7000-8000-0000000000aa:1798135200007',
      'carillon-schedule-id': '01980000-0000-7000-8000-0000000000aa',
      'carillon-scheduled-for': '2026-12-24T18:00:00.007Z',
      'carillon-attempt': '3',
      'carillon-run-id': RUN_ID,
    })
    expect(traceparent).toMatch(/^00-0198000000007000800001234567\w{4}-[\da-f]{16}-01$/)
    expect(request?.rawHeaders.length).toBe(24)
    expect(request).toMatchObject({ method: 'POST', path: '/run?a=1&b=%20' })
  })

  test('shares its trace with the other attempts of its run, and has a span of its own', async () => {
    const { requests } = await received({}, [1, 2, 3])

    const parts = requests.map(({ headers }) => String(headers['traceparent']).split('-'))
    expect(new Set(parts.map(([, traceId]) => traceId))).toEqual(new Set([RUN_ID.replaceAll('-', '')]))
    expect(new Set(parts.map(([, , spanId]) => spanId)).size).toBe(3)
  })

  test('has the header of its own slot, whichever slot was sent before', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget()
    for (const scheduledFor of [SLOT, SLOT + 1, SLOT]) {
      await dispatchTo(target, { url: server.origin }, { scheduledFor })
    }

    expect(server.requests.map(({ headers }) => headers['carillon-scheduled-for'])).toEqual([
      '2026-12-24T18:00:00.007Z',
      '2026-12-24T18:00:00.008Z',
      '2026-12-24T18:00:00.007Z',
    ])
  })

  test('may have another Content-Type and User-Agent, once each', async () => {
    const headers = { 'content-TYPE': 'application/cloudevents+json', 'user-agent': 'Digest/2' }
    const { requests } = await received({ payload: {}, headers })

    const names = requests[0]?.rawHeaders.filter((_text, index) => index % 2 === 0).map((name) => name.toLowerCase())
    expect(requests[0]?.headers).toMatchObject({
      'content-type': 'application/cloudevents+json',
      'user-agent': 'Digest/2',
    })
    expect(new Set(names).size).toBe(names?.length)
  })

  test('of each attempt has the same key and the same body, with the fields in their original order (I5)', async () => {
    const text = '{"z":1,"a":{"y":[1.5,-0.25,"é😀"],"b":null},"__proto__":{"x":true},"":"\\t"}'
    const { requests } = await received({ payload: JSON.parse(text) as unknown }, [1, 2, 3])

    expect(requests.map(({ body }) => body.toString())).toEqual([text, text, text])
    expect(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
  })

  test.each([
    ['null', null, 'null'],
    ['a text', 'é', '"é"'],
    ['false', false, 'false'],
    ['zero', 0, '0'],
    ['an empty list', [], '[]'],
  ])('sends %s as its payload', async (_what, payload, body) => {
    const { requests } = await received({ payload })

    expect(requests[0]?.body.toString()).toBe(body)
    expect(requests[0]?.headers['content-type']).toBe('application/json')
  })

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'with the method %s may have no body',
    async (method) => {
      const { requests } = await received({ method })

      expect(requests[0]).toMatchObject({ method, body: Buffer.alloc(0) })
      expect(requests[0]?.headers).not.toHaveProperty('content-type')
    },
  )

  test.each(['PUT', 'PATCH', 'DELETE'])('with the method %s may have a body', async (method) => {
    const { requests } = await received({ method, payload: { a: 1 } })

    expect(requests[0]?.body.toString()).toBe('{"a":1}')
  })

  test('that cannot be built from a stored spec is malformed, and nothing is sent', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget()
    const attempt = attemptAt({ url: server.origin })
    const spec = { ...attempt.spec, headers: { 'X-Bad': 'a\r\nHost: evil' } }

    const outcome = await target.dispatch({ ...attempt, spec }, new AbortController().signal)

    expect(outcome).toMatchObject({ kind: 'malformed', error: { code: 'invalid_request' } })
    expect(server.requests).toHaveLength(0)
  })
})
