import { startHttpServer } from '@carillon/outbound/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { dispatchTo, httpTarget } from './attempt.ts'

const NOW = Date.UTC(2026, 10, 16, 8, 0, 0)

async function outcomeOf(status: number, headers: Record<string, string> = {}, body: string | Buffer = '') {
  await using server = await startHttpServer((response) => response.writeHead(status, headers).end(body))
  await using target = httpTarget({ now: () => NOW })
  return await dispatchTo(target, { url: server.origin })
}

describe('the status of an answer', () => {
  test.each([200, 201, 202, 204, 206, 299])('%i is a success', async (status) => {
    expect(await outcomeOf(status)).toEqual({ kind: 'succeeded', result: { status } })
  })

  test.each([408, 425, 429, 500, 501, 502, 503, 504, 599])('%i is a failure that is retried', async (status) => {
    expect(await outcomeOf(status)).toMatchObject({
      kind: 'failed',
      error: { code: 'http_status', detail: { status } },
      retryable: true,
    })
  })

  test.each([400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 451, 499])('%i is a final failure', async (status) => {
    expect(await outcomeOf(status, { 'Retry-After': '5' })).toEqual({
      kind: 'failed',
      error: {
        code: 'http_status',
        message: expect.stringContaining(`expected an answer with a 2xx status, got ${status}`) as string,
        detail: { status },
      },
      retryable: false,
    })
  })

  test('a success after an interim answer is a success', async () => {
    await using server = await startHttpServer((response) => {
      response.writeProcessing()
      response.end('done')
    })
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin })).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: 'done' },
    })
  })
})

describe('a redirect', () => {
  test.each([300, 301, 302, 303, 304, 305, 307, 308])(
    'with the status %i is a final failure, and is not followed',
    async (status) => {
      await using elsewhere = await startHttpServer((response) => response.end('stolen'))
      await using server = await startHttpServer((response) =>
        response.writeHead(status, { Location: `${elsewhere.origin}/next` }).end(),
      )
      await using target = httpTarget()

      const outcome = await dispatchTo(target, { url: server.origin, payload: { secret: 1 } })

      expect(outcome).toMatchObject({
        kind: 'failed',
        error: { code: 'redirect', detail: { status, location: `${elsewhere.origin}/next` } },
        retryable: false,
      })
      expect(elsewhere.connectionCount).toBe(0)
      expect(server.requests).toHaveLength(1)
    },
  )

  test('to the same host is not followed', async () => {
    await using server = await startHttpServer((response) => response.writeHead(307, { Location: '/next' }).end())
    await using target = httpTarget()

    await dispatchTo(target, { url: server.origin })

    expect(server.requests).toHaveLength(1)
  })
})

describe('the Retry-After header', () => {
  test.each([
    ['0', 0],
    ['7', 7_000],
    ['10072', 10_072_000],
    ['Mon, 16 Nov 2026 08:02:00 GMT', 120_000],
    ['Monday, 16-Nov-26 08:02:00 GMT', 120_000],
    ['Mon Nov 16 08:02:00 2026', 120_000],
    ['Mon, 16 Nov 2026 08:00:00 GMT', 0],
    ['99999999999', 86_400_000],
    ['9'.repeat(400), 86_400_000],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 86_400_000],
  ])('with the value %s sets the time to wait', async (value, expected) => {
    for (const status of [429, 503, 500]) {
      expect(await outcomeOf(status, { 'Retry-After': value })).toMatchObject({
        retryable: true,
        retryAfterMs: expected,
      })
    }
  })

  test.each([
    '-1',
    '+5',
    '1.5',
    '1e3',
    '0x10',
    '',
    'soon',
    '5 seconds',
    'Mon, 16 Nov 2026 07:59:59 GMT',
    'Mon, 99 Nov 2026 08:02:00 GMT',
    '2026-11-16T08:02:00Z',
    'Mon, 16 Nov 2026 08:02:00 +0100',
  ])('with the invalid value %j is ignored', async (value) => {
    const outcome = await outcomeOf(503, { 'Retry-After': value })

    expect(outcome).toMatchObject({ kind: 'failed', retryable: true })
    expect(outcome).not.toHaveProperty('retryAfterMs')
  })
})

test('a Retry-After without a zone is read as UTC, whatever the zone of the worker', async () => {
  vi.stubEnv('TZ', 'Asia/Tokyo')
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  expect(new Date(NOW).getHours()).toBe(17)

  expect(await outcomeOf(503, { 'Retry-After': 'Mon Nov 16 08:02:00 2026' })).toMatchObject({ retryAfterMs: 120_000 })
})

describe('the body of an answer', () => {
  const json = { 'Content-Type': 'application/json; charset=utf-8' }

  test.each([
    ['as JSON if its type is JSON', json, '{"b":1,"a":[true,null,"é"]}', { b: 1, a: [true, null, 'é'] }],
    [
      'as JSON if its type ends in +json',
      { 'Content-Type': 'application/problem+json' },
      '{"title":"no"}',
      { title: 'no' },
    ],
    ['as text if its type is not JSON', { 'Content-Type': 'text/plain' }, '{"a":1}', '{"a":1}'],
    ['as text without a type', {}, '123', '123'],
    ['as text if its JSON is invalid', json, '{"a":', '{"a":'],
    ['as text if parsing it would lose digits', json, '{"id":9007199254740993}', '{"id":9007199254740993}'],
    ['as text if a number is too large', json, '[1e400]', '[1e400]'],
    ['as text if a string contains U+0000', json, String.raw`["a\u0000b"]`, String.raw`["a\u0000b"]`],
    ['as text if a key contains U+0000', json, String.raw`{"a\u0000b":1}`, String.raw`{"a\u0000b":1}`],
    ['as text if a string contains half a character', json, String.raw`["\ud83d"]`, String.raw`["\ud83d"]`],
    [
      'as text if it is nested too deeply',
      json,
      '['.repeat(2000) + ']'.repeat(2000),
      '['.repeat(2000) + ']'.repeat(2000),
    ],
    ['with U+0000 replaced', {}, 'a\0b', 'a\uFFFDb'],
    ['with invalid UTF-8 replaced', {}, Buffer.from([0x61, 0xff, 0x62]), 'a\uFFFDb'],
  ])('is stored %s', async (_how, headers, body, expected) => {
    expect(await outcomeOf(200, headers, body)).toEqual({ kind: 'succeeded', result: { status: 200, body: expected } })
    expect(await outcomeOf(404, headers, body)).toMatchObject({ error: { detail: { status: 404, body: expected } } })
  })

  test('is stored whole if it arrives in chunks, even if one ends within a character', async () => {
    const pieces = [Buffer.from('{"a":"'), Buffer.from([0xc3]), Buffer.from([0xa9]), Buffer.from('"}')]
    await using server = await startHttpServer((response) => {
      response.writeHead(200, json)
      const writeNext = (): void => {
        const piece = pieces.shift()
        if (piece === undefined) response.end()
        // Each chunk is flushed before the next one, so that they do not arrive as one.
        else response.write(piece, () => setImmediate(writeNext))
      }
      writeNext()
    })
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin })).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: { a: 'é' } },
    })
  })

  test('is stored up to 4096 bytes, without a partial character', async () => {
    const outcome = await outcomeOf(200, json, JSON.stringify('é'.repeat(5000)))

    // The quote is the first byte, so the last é would begin at byte 4095.
    expect(outcome).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: `"${'é'.repeat(2047)}`, truncated: true },
    })
  })

  test('is stored as text if it is cut, even if the rest is valid JSON', async () => {
    expect(await outcomeOf(200, json, `[1]${' '.repeat(5000)}`)).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: `[1]${' '.repeat(4093)}`, truncated: true },
    })
  })

  test('is not expected for a HEAD request', async () => {
    await using server = await startHttpServer((response) => response.writeHead(200, { 'Content-Length': '10' }).end())
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin, method: 'HEAD' })).toEqual({
      kind: 'succeeded',
      result: { status: 200 },
    })
  })
})
