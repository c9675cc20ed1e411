import { describe, expect, test } from 'vitest'

import { createHttpTarget } from '../src/index.ts'
import { attemptAt, dispatchTo, httpTarget } from './attempt.ts'
import { startHttpServer } from './local-server.ts'

function isAllowed(pattern: string, url: string): boolean {
  const { spec } = attemptAt({ url })
  return createHttpTarget({ allowedHosts: [pattern] }).check?.(spec).length === 0
}

describe('a host', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:9000/'],
    ['127.0.0.1', 'http://127.1/'],
    ['127.0.0.1', 'http://0x7f.1/'],
    ['127.0.0.1', 'http://2130706433/'],
    ['127.1', 'http://127.0.0.1/'],
    ['localhost', 'http://LOCALHOST:3000/'],
    ['Digest.Internal', 'https://digest.internal/'],
    ['digest.internal', 'https://digest.internal./'],
    ['digest.internal.', 'https://digest.internal/'],
    ['digest.internal:8443', 'https://digest.internal:8443/'],
    ['digest.internal:443', 'https://digest.internal/'],
    ['digest.internal:80', 'http://digest.internal/'],
    ['*.example.com', 'https://a.example.com/'],
    ['*.example.com', 'https://a.b.example.com./'],
    ['*.example.com:8443', 'https://a.example.com:8443/'],
    ['bücher.example', 'https://xn--bcher-kva.example/'],
    ['*.bücher.example', 'https://a.bücher.example/'],
    ['[::1]', 'http://[::1]:80/'],
    ['[0:0:0:0:0:0:0:1]', 'http://[::1]/'],
    ['[::1]:8080', 'http://[::1]:8080/'],
    ['*', 'http://169.254.169.254/latest'],
    ['*', 'http://[::1]/'],
    ['*:8443', 'https://anything:8443/'],
  ])('by %s may be called: %s', (pattern, url) => {
    expect(isAllowed(pattern, url)).toBe(true)
  })

  test.each([
    ['127.0.0.1', 'http://127.0.0.2/'],
    ['127.0.0.1', 'http://localhost/'],
    ['127.0.0.1', 'http://[::1]/'],
    ['127.0.0.1', 'http://[::ffff:127.0.0.1]/'],
    ['127.0.0.1', 'http://127.0.0.1.nip.io/'],
    ['127.0.0.1', 'http://0/'],
    ['localhost', 'http://127.0.0.1/'],
    ['localhost', 'http://localhost.evil.com/'],
    ['localhost', 'http://a.localhost/'],
    ['digest.internal', 'https://xdigest.internal/'],
    ['digest.internal', 'https://a.digest.internal/'],
    ['digest.internal', 'https://digestxinternal/'],
    ['digest.internal', 'https://digest.internal../'],
    ['digest.internal:8443', 'https://digest.internal/'],
    ['digest.internal:443', 'http://digest.internal/'],
    ['*.example.com', 'https://example.com/'],
    ['*.example.com', 'https://evilexample.com/'],
    ['*.example.com', 'https://a.example.com.evil.com/'],
    ['*.example.com:8443', 'https://a.example.com/'],
    ['apple.com', 'https://аpple.com/'],
    ['*:8443', 'https://anything/'],
  ])('by %s may not be called: %s', (pattern, url) => {
    expect(isAllowed(pattern, url)).toBe(false)
  })

  test('may not be called when the list is empty', () => {
    expect(createHttpTarget({ allowedHosts: [] }).check?.(attemptAt({ url: 'http://localhost/' }).spec)).toHaveLength(1)
  })

  test('that may not be called is a problem of the URL, and says where hosts are listed', () => {
    const target = createHttpTarget({ allowedHosts: ['127.0.0.1'] })

    expect(target.check?.(attemptAt({ url: 'http://169.254.169.254:8080/latest/meta-data' }).spec)).toEqual([
      {
        path: 'url',
        message:
          'Expected a host that this installation may call (CARILLON_ALLOWED_TARGETS), but found 169.254.169.254:8080.',
      },
    ])
  })
})

describe('a pattern', () => {
  test.each([
    '',
    ' ',
    '**',
    '*.',
    '*.*',
    'a.*.com',
    '*example.com',
    'http://example.com',
    'example.com/path',
    'user@example.com',
    'example.com:0',
    'example.com:65536',
    'example.com:',
    'example.com:x',
    '::1',
    '[::1',
    '[x]',
    '10.0.0.0/8',
    '*.127.0.0.1',
    '256.256.256.256',
    'exa mple.com',
    'a,b',
  ])('%j stops the process, not a schedule', (pattern) => {
    expect(() => createHttpTarget({ allowedHosts: [pattern] })).toThrow(RangeError)
  })
})

describe('at dispatch', () => {
  // Spellings of loopback of which nine of twelve passed a guard that only looked at names.
  test.each([
    '127.0.0.1',
    '127.1',
    '0177.0.0.1',
    '0x7f000001',
    '2130706433',
    '１２７.0.0.1',
    '0',
    '0.0.0.0',
    'localhost',
    'LOCALHOST.',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
  ])('a host that is no longer allowed is not connected to: %s', async (host) => {
    await using canary = await startHttpServer((response) => response.end('secret'))
    await using target = httpTarget({ allowedHosts: ['digest.internal'] })

    const outcome = await dispatchTo(target, { url: `http://${host}:${canary.port}/` })

    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'host_not_allowed' }, retryable: false })
    expect(canary.connectionCount).toBe(0)
  })

  test('another port than the one allowed is not connected to', async () => {
    await using canary = await startHttpServer((response) => response.end('secret'))
    await using allowed = await startHttpServer((response) => response.end('fine'))
    await using target = httpTarget({ allowedHosts: [`127.0.0.1:${allowed.port}`] })

    expect(await dispatchTo(target, { url: canary.origin })).toMatchObject({ error: { code: 'host_not_allowed' } })
    expect(await dispatchTo(target, { url: allowed.origin })).toMatchObject({ kind: 'succeeded' })
    expect(canary.connectionCount).toBe(0)
  })

  test('a spec whose URL cannot be read is refused', async () => {
    await using target = httpTarget({ allowedHosts: ['*'] })
    const attempt = attemptAt({ url: 'http://127.0.0.1/' })

    const outcome = await target.dispatch(
      { ...attempt, spec: { ...attempt.spec, url: 'nonsense' } },
      new AbortController().signal,
    )

    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'host_not_allowed' }, retryable: false })
  })
})
