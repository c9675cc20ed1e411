import { gzipSync } from 'node:zlib'

import { PROBLEM_TYPES, problemTypeUri, REQUEST_BODY_MAX_BYTES, type Problem } from '@carillon/api'
import type { LightMyRequestResponse } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { exchange } from './raw-exchange.ts'
import { ADMIN_KEY, createTestApp } from './test-app.ts'

const world = await createTestApp()
const { request } = world
let url: string

beforeAll(async () => {
  url = await world.listen()
})
afterAll(() => world[Symbol.asyncDispose]())

/** Compares an answer with RFC 9457 and the table of problems. */
function expectProblem(answer: LightMyRequestResponse, code: keyof typeof PROBLEM_TYPES): Problem {
  const problem = answer.json<Problem>()
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/)
  expect(problem).toMatchObject({ type: problemTypeUri(code), code, ...PROBLEM_TYPES[code] })
  expect(answer.statusCode).toBe(problem.status)
  expect(problem.instance).toBe(`/requests/${String(answer.headers['x-request-id'])}`)
  expect(problem.detail).not.toBe('')
  return problem
}

const CREATE = '/api/v1/schedules'
const JSON_TYPE = { 'content-type': 'application/json' }

describe('the body of a request', () => {
  test.each([
    ['nothing at all', undefined, {}],
    ['nothing, with the type of JSON', '', JSON_TYPE],
    ['half an object', '{"name": ', JSON_TYPE],
    ['two objects', '{} {}', JSON_TYPE],
    ['a JavaScript object that is not JSON', "{name: 'x'}", JSON_TYPE],
    ['NaN', '{"name": NaN}', JSON_TYPE],
    ['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), JSON_TYPE],
    ['a cut UTF-8 sequence', Buffer.from([0x22, 0xe2, 0x82, 0x22]), JSON_TYPE],
  ])('a body of %s is refused as malformed JSON', async (_what, body, headers) => {
    const answer = await request('POST', CREATE, { headers, body })

    expect(expectProblem(answer, 'malformed_json').detail).toMatch(/^expected a JSON body, got/)
  })

  test.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'a body of the type %s is refused with 415',
    async (type) => {
      expectProblem(
        await request('POST', CREATE, { headers: { 'content-type': type }, body: JSON.stringify(DIGEST) }),
        'unsupported_media_type',
      )
    },
  )

  test.each(['gzip', 'br', 'zstd', 'identity, gzip', 'x'])(
    'a body with the encoding %s is refused with 415',
    async (encoding) => {
      const headers = { 'content-encoding': encoding }
      const answer = await request('POST', CREATE, { headers, body: gzipSync(JSON.stringify(DIGEST)) })

      const { errors } = expectProblem(answer, 'unsupported_media_type')
      expect(errors).toMatchObject([{ field: 'Content-Encoding' }])
      expect(answer.headers['accept-encoding']).toBe('identity')
    },
  )

  test.each(['identity', 'Identity', ''])('a body with the encoding "%s" is accepted', async (encoding) => {
    const answer = await request('POST', CREATE, { headers: { 'content-encoding': encoding }, body: DIGEST })

    expect(answer.statusCode).toBe(201)
  })

  test('a body without a type, or with an invalid type, is refused with 415', async () => {
    const payload = JSON.stringify(DIGEST)
    const headers = { authorization: `Bearer ${ADMIN_KEY}` }

    for (const type of [{}, { 'content-type': '' }, { 'content-type': 'json' }]) {
      const answer = await world.app.inject({ method: 'POST', url: CREATE, headers: { ...headers, ...type }, payload })

      expectProblem(answer, 'unsupported_media_type')
    }
  })

  test.each(['application/json; charset=utf-8', 'Application/JSON'])(
    'a body of the type %s is read as JSON',
    async (type) => {
      const answer = await request('POST', CREATE, { headers: { 'content-type': type }, body: JSON.stringify(DIGEST) })

      expect(answer.statusCode).toBe(201)
    },
  )

  test('a body that is too large is refused with 413, and the answer states the limit', async () => {
    const send = (bytes: number): Promise<LightMyRequestResponse> =>
      request('POST', CREATE, { headers: JSON_TYPE, body: JSON.stringify(DIGEST).padEnd(bytes) })

    expect(await send(REQUEST_BODY_MAX_BYTES)).toMatchObject({ statusCode: 201 })
    const { detail } = expectProblem(await send(REQUEST_BODY_MAX_BYTES + 1), 'body_too_large')
    expect(detail).toContain(`at most ${REQUEST_BODY_MAX_BYTES} bytes, got more`)
  })

  test.each([['null'], ['7'], ['"text"'], ['[]'], ['true']])(
    'the body %s is refused because it is not an object',
    async (body) => {
      for (const url of [CREATE, '/api/v1/cadence/preview', '/api/v1/keys', '/api/v1/grants']) {
        const problem = expectProblem(await request('POST', url, { body }), 'invalid_input')

        expect(problem.errors[0]).toMatchObject({
          field: '',
          message: expect.stringMatching(/^expected an object, got/) as unknown,
        })
      }
    },
  )
})

describe('content that a body must not have', () => {
  test.each([
    ['{"__proto__": {"isAdmin": true}}', '__proto__'],
    ['{"target": {"payload": {"a": [{"__proto__": null}]}}}', 'target.payload.a.0.__proto__'],
    [String.raw`{"target": {"\u005f_proto__": 1}}`, 'target.__proto__'],
  ])('the body %s is refused with a problem that names the field', async (body, field) => {
    const problem = expectProblem(await request('POST', CREATE, { body }), 'invalid_input')

    expect(problem.errors).toEqual([{ field, message: expect.stringContaining('__proto__') as unknown }])
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
  })

  test.each([101, 4000])('a body with %i levels is refused', async (levels) => {
    const payload = '['.repeat(levels) + ']'.repeat(levels)
    const body = `{"name":"x","cadence":{"kind":"cron","expression":"@daily"},"target":{"kind":"http","payload":${payload}}}`

    const problem = expectProblem(await request('POST', CREATE, { body }), 'invalid_input')

    expect(problem.errors).toEqual([{ field: 'target', message: expect.stringContaining('100 levels') as unknown }])
  })
})

describe('unknown routes', () => {
  test.each([
    ['GET', '/nothing'],
    ['GET', '/api/v1'],
    ['POST', '/api/v2/schedules'],
    ['GET', '//api/v1/schedules'],
    ['OPTIONS', '*'],
  ])('%s %s gets 404', async (method, url) => {
    expectProblem(await request(method, url, { key: null }), 'route_not_found')
  })

  test.each([
    ['PUT', CREATE, 'GET, HEAD, POST'],
    ['POST', '/api/v1/schedules/x?y=1', 'DELETE, GET, HEAD, PATCH'],
    ['GET', '/api/v1/schedules/x/pause', 'POST'],
    ['HEAD', '/api/v1/events', 'GET'],
    ['DELETE', '/healthz', 'GET, HEAD'],
    ['TRACE', '/openapi.json', 'GET, HEAD'],
  ])('%s %s gets 405 with the allowed methods', async (method, url, allow) => {
    const answer = await request(method, url)

    expect(answer.headers.allow).toBe(allow)
    if (method !== 'HEAD') expectProblem(answer, 'method_not_allowed')
    expect(answer.statusCode).toBe(405)
  })

  test('a route that was added later is known as well', async () => {
    await using other = await createTestApp()
    other.app.get('/later', async () => 'later')

    const answer = await other.request('POST', '/later')

    expect(answer.headers.allow).toBe('GET, HEAD')
  })

  test.each(['/api/v1/schedules/%', '/api/v1/schedules/%zz', '/api/v1/runs/%ff', '/%C0%AF'])(
    'the invalid path %s is refused with a problem',
    async (url) => {
      const answer = await request('GET', url)

      if (answer.statusCode === 404) expectProblem(answer, 'route_not_found')
      else expect(expectProblem(answer, 'invalid_input').errors[0]).toMatchObject({ field: 'path' })
    },
  )
})

describe('malformed requests', () => {
  test('headers that are too large are refused with 431', async () => {
    const answer = await exchange(url, `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`)

    const problem = JSON.parse(answer.body) as Problem
    expect(answer.status).toBe(431)
    expect(answer.head).toContain('content-type: application/problem+json')
    expect(problem).toMatchObject({ code: 'headers_too_large', ...PROBLEM_TYPES.headers_too_large })
    expect(answer.head).toContain(`x-request-id: ${problem.instance.replace('/requests/', '')}`)
  })

  test.each([
    'NONSENSE\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  ])('%j is refused with 400', async (text) => {
    const answer = await exchange(url, text)

    expect(answer.status).toBe(400)
    expect(answer.head).toContain('content-type: application/problem+json')
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'invalid_input', status: 400 })
  })

  test('an unknown Expect header is ignored', async () => {
    const answer = await exchange(url, 'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: y\r\nConnection: close\r\n\r\n')

    expect(answer.status).toBe(200)
  })
})

test('a request id sent by the client is ignored', async () => {
  const answer = await request('GET', '/healthz', { headers: { 'x-request-id': 'mine', 'request-id': 'mine' } })

  expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f]{8}-/)
})
