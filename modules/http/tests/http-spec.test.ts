import { HTTP_METHODS } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { RESERVED_HEADERS } from '../src/header-rules.ts'
import { createHttpTarget } from '../src/index.ts'

const target = createHttpTarget({ allowedHosts: ['*'] })
const URL_GIVEN = 'https://digest.internal/run'

/** The problems of an input as core reports them: the field at fault and a message. */
function problemsOf(input: Record<string, unknown>): { path: string; message: string }[] {
  const parsed = target.schema.safeParse({ kind: 'http', url: URL_GIVEN, ...input })
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }))
}

function pathsOf(input: Record<string, unknown>): string[] {
  return problemsOf(input).map(({ path }) => path)
}

describe('the spec of an HTTP target', () => {
  test('needs only a URL, and the other fields get their defaults', () => {
    expect(target.schema.parse({ kind: 'http', url: URL_GIVEN })).toEqual({
      kind: 'http',
      url: URL_GIVEN,
      method: 'POST',
      timeoutSeconds: 30,
    })
  })

  test('stays the same when it is parsed again', () => {
    const spec = target.schema.parse({
      kind: 'http',
      url: 'HTTP://EXAMPLE.com:80/a b?'.replace(' ', '%20'),
      headers: { 'X-A': 'b' },
      payload: { z: [1] },
    })

    expect(target.schema.parse(JSON.parse(JSON.stringify(spec)))).toEqual(spec)
  })

  test.each([
    ['an unknown field', { colour: 'blue' }, ''],
    ['the retention, which only the installation sets', { idempotencyRetentionSeconds: 1 }, ''],
    ['another kind', { kind: 'graph' }, 'kind'],
    ['no URL', { url: undefined }, 'url'],
    ['a URL that is not a string', { url: 7 }, 'url'],
    ['an unknown method', { method: 'BREW' }, 'method'],
    ['a method in lower case', { method: 'post' }, 'method'],
    ['CONNECT', { method: 'CONNECT' }, 'method'],
    ['no time', { timeoutSeconds: 0 }, 'timeoutSeconds'],
    ['too much time', { timeoutSeconds: 301 }, 'timeoutSeconds'],
    ['half a second', { timeoutSeconds: 1.5 }, 'timeoutSeconds'],
    ['time as a string', { timeoutSeconds: '30' }, 'timeoutSeconds'],
    ['a payload with GET', { method: 'GET', payload: {} }, 'payload'],
    ['a payload with HEAD', { method: 'HEAD', payload: null }, 'payload'],
  ])('with %s is refused with the name of the field', (_what, input, path) => {
    const problems = problemsOf(input)

    expect(problems.map((problem) => problem.path)).toEqual([path])
  })

  test('has the timeout that its field states', () => {
    expect(target.timeoutMs(target.schema.parse({ kind: 'http', url: URL_GIVEN }))).toBe(30_000)
    expect(target.timeoutMs(target.schema.parse({ kind: 'http', url: URL_GIVEN, timeoutSeconds: 300 }))).toBe(300_000)
  })
})

describe('the URL of a spec', () => {
  test('is stored in its canonical form', () => {
    const { url } = target.schema.parse({ kind: 'http', url: 'HTTPS://Bücher.example:443/a/../b?q=1' })

    expect(url).toBe('https://xn--bcher-kva.example/b?q=1')
  })

  test.each(['', 'file:///etc/passwd', 'http://user:hunter2@example.com/', 'http://127.1/', 'http://*/'])(
    '%j is refused with the name of the field',
    (url) => {
      const [problem, ...others] = problemsOf({ url })

      expect(problem?.path).toBe('url')
      expect(problem?.message).toMatch(/^expected .+, got .+[^.]$/)
      expect(problem?.message).not.toContain('hunter2')
      expect(others).toEqual([])
    },
  )
})

describe('the scope that a grant needs', () => {
  test.each([
    ['https://example.com/run?list=a', 'http:dispatch:example.com'],
    ['https://EXAMPLE.com.:443/', 'http:dispatch:example.com'],
    ['https://example.com.:8443/', 'http:dispatch:example.com:8443'],
    ['http://example.com:443/', 'http:dispatch:example.com:443'],
    ['https://bücher.example/', 'http:dispatch:xn--bcher-kva.example'],
    ['http://127.0.0.1:3000/', 'http:dispatch:127.0.0.1:3000'],
    ['http://[::1]:80/', 'http:dispatch:[::1]'],
  ])('for %s is %s', (url, scope) => {
    expect(target.requiredScope(target.schema.parse({ kind: 'http', url }))).toBe(scope)
  })
})

describe('the auth of a spec', () => {
  test.each([
    { kind: 'none' },
    { kind: 'bearer', secretRef: 'a' },
    { kind: 'hmac', secretRef: `0${'x'.repeat(99)}` },
    { kind: 'bearer', secretRef: 'Digest.prod_2-b' },
  ])('%j is stored unchanged', (auth) => {
    expect(target.schema.parse({ kind: 'http', url: URL_GIVEN, auth }).auth).toEqual(auth)
  })

  test.each([
    ['no object', 'bearer', 'auth'],
    ['null', null, 'auth'],
    ['no kind', { secretRef: 'a' }, 'auth.kind'],
    ['another kind', { kind: 'basic', secretRef: 'a' }, 'auth.kind'],
    ['no name', { kind: 'bearer' }, 'auth.secretRef'],
    ['an empty name', { kind: 'hmac', secretRef: '' }, 'auth.secretRef'],
    ['a long name', { kind: 'hmac', secretRef: 'x'.repeat(101) }, 'auth.secretRef'],
    ['a name that begins with a dot', { kind: 'hmac', secretRef: '.env' }, 'auth.secretRef'],
    ['a path', { kind: 'hmac', secretRef: 'a/../b' }, 'auth.secretRef'],
    ['a line end', { kind: 'hmac', secretRef: 'a\n' }, 'auth.secretRef'],
    ['a name that is not a string', { kind: 'bearer', secretRef: 7 }, 'auth.secretRef'],
    ['the secret itself', { kind: 'bearer', secretRef: 'a', value: 'hunter2' }, 'auth'],
    ['a secret for the kind none', { kind: 'none', secretRef: 'a' }, 'auth'],
  ])('with %s is refused with the name of the field', (_what, auth, path) => {
    const problems = problemsOf({ auth })

    expect(problems.map((problem) => problem.path)).toEqual([path])
  })

  test('is not quoted in a problem, because it may be the secret itself', () => {
    const [problem] = problemsOf({ auth: { kind: 'bearer', secretRef: 'hunter2 hunter2' } })

    expect(problem?.message).toMatch(/^expected the name of a secret: .+, got another text$/)
  })

  test('names its secrets and their fields', () => {
    const spec = (auth?: unknown) => target.schema.parse({ kind: 'http', url: URL_GIVEN, auth })

    expect(target.secretRefs?.(spec({ kind: 'hmac', secretRef: 'digest' }))).toEqual([
      { path: 'auth.secretRef', name: 'digest' },
    ])
    expect(target.secretRefs?.(spec({ kind: 'none' }))).toEqual([])
    expect(target.secretRefs?.(spec())).toEqual([])
  })
})

describe('the headers of a spec', () => {
  const examples = Object.keys(RESERVED_HEADERS).map((name) => name.replace('*', 'anything'))

  test.each(examples.flatMap((name) => [name, name.toUpperCase(), name.replaceAll('-', '_')]))(
    'may not include the reserved header %s',
    (name) => {
      const problems = problemsOf({ headers: { 'X-Fine': '1', [name]: 'x' } })

      expect(problems).toEqual([
        { path: `headers.${name}`, message: expect.stringContaining('that a schedule may set') as string },
      ])
    },
  )

  test.each([
    'Idempotency-Key',
    'Carillon-Attempt',
    'Carillon-Run-Id',
    'traceparent',
    'tracestate',
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'Upgrade',
    'TE',
    'Trailer',
    'Expect',
    'Proxy-Authorization',
    'Proxy-Connection',
    'Authorization',
    'Cookie',
    'X-API-Key',
    'webhook-id',
    'X-Forwarded-For',
    'Accept-Encoding',
  ])('may not include the well-known header %s', (name) => {
    expect(pathsOf({ headers: { [name]: 'x' } })).toEqual([`headers.${name}`])
  })

  test.each(['Authorization', 'Cookie', 'X-Api-Key'])(
    'may not include %s: the message refers to secrets, and does not quote the value',
    (name) => {
      const [problem] = problemsOf({ headers: { [name]: 'hunter2' } })

      expect(problem?.message).toContain('name a secret in `auth`')
      expect(problem?.message).not.toContain('hunter2')
    },
  )

  test.each([
    ['an empty name', { '': 'x' }, 'headers.'],
    ['a blank in its name', { 'X A': 'x' }, 'headers.X A'],
    ['a colon in its name', { 'X:A': 'x' }, 'headers.X:A'],
    ['a line break in its name', { 'X\r\nHost': 'x' }, 'headers.X\r\nHost'],
    ['a letter beyond ASCII in its name', { 'X-É': 'x' }, 'headers.X-É'],
    ['a name that is too long', { ['x'.repeat(129)]: 'x' }, `headers.${'x'.repeat(129)}`],
    ['a line break in its value', { 'X-A': 'x\r\nHost: evil' }, 'headers.X-A'],
    ['a lone line feed in its value', { 'X-A': 'x\ny' }, 'headers.X-A'],
    ['U+0000 in its value', { 'X-A': 'x\0' }, 'headers.X-A'],
    ['a letter beyond ASCII in its value', { 'X-A': 'é' }, 'headers.X-A'],
    ['a blank around its value', { 'X-A': ' x' }, 'headers.X-A'],
    ['a value that is too long', { 'X-A': 'x'.repeat(4097) }, 'headers.X-A'],
    ['a value that is not a string', { 'X-A': 1 }, 'headers.X-A'],
    ['a list of values', { 'X-A': ['x'] }, 'headers.X-A'],
    ['the same name twice in different case', { 'X-A': 'x', 'x-a': 'y' }, 'headers.x-a'],
    ['a list instead of an object', [['X-A', 'x']], 'headers'],
    ['null instead of an object', null, 'headers'],
    ['51 of them', Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`X-${n}`, 'x'])), 'headers'],
    ['too many bytes in all', { 'X-A': 'x'.repeat(4096), 'X-B': 'x'.repeat(4096) }, 'headers'],
  ])('are refused with %s', (_what, headers, path) => {
    expect(pathsOf({ headers })).toEqual([path])
  })

  test.each([{}, { 'X-Empty': '' }, { 'X-A': 'a b\tc' }, { Accept: 'application/json', 'X-Tenant': '~' }])(
    'may be %j',
    (headers) => {
      expect(target.schema.parse({ kind: 'http', url: URL_GIVEN, headers }).headers).toEqual(headers)
    },
  )

  test('may include one that is named __proto__', () => {
    const headers = JSON.parse('{"__proto__":"x"}') as unknown

    expect(JSON.stringify(target.schema.parse({ kind: 'http', url: URL_GIVEN, headers }).headers)).toBe(
      '{"__proto__":"x"}',
    )
  })
})

describe('the payload of a spec', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic)

  function nested(depth: number): unknown {
    let value: unknown = 1
    for (let level = 0; level < depth; level++) value = [value]
    return value
  }

  test.each([
    ['NaN', { a: [Number.NaN] }, 'payload.a.0'],
    ['Infinity', JSON.parse('{"a":1e400}'), 'payload.a'],
    ['a whole number that lost its digits', JSON.parse('{"a":9007199254740993}'), 'payload.a'],
    ['undefined inside', { a: { b: undefined } }, 'payload.a.b'],
    ['a hole in a list', Array.from({ length: 1 }), 'payload.0'],
    ['a bigint', { a: 1n }, 'payload.a'],
    ['a function', { toJSON: () => 1 }, 'payload.toJSON'],
    ['a symbol', [Symbol('x')], 'payload.0'],
    ['a date', { at: new Date(0) }, 'payload.at'],
    ['a map', new Map(), 'payload'],
    ['U+0000', { a: 'x\0y' }, 'payload.a'],
    ['U+0000 in a key', { a: { 'x\0y': 1 } }, 'payload.a'],
    ['half a character', ['\ud83d'], 'payload.0'],
    ['half a character in a key', { '\udc00': 1 }, 'payload'],
    ['10,000 levels', nested(10_000), 'payload'],
    ['101 levels', nested(101), 'payload'],
    ['a cycle', cyclic, 'payload'],
    ['more than 256 kB', 'x'.repeat(262_143), 'payload'],
    ['more than 256 kB once written in UTF-8', 'é'.repeat(131_072), 'payload'],
    ['more than 256 kB of small values', Array.from({ length: 200_000 }, () => 1), 'payload'],
  ])('is refused with %s', (_what, payload, path) => {
    expect(pathsOf({ payload })).toEqual([path])
  })

  test.each([
    ['100 levels', nested(100)],
    ['256 kB', 'x'.repeat(262_142)],
    ['the greatest whole numbers', [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
    ['small and broken numbers', [0.1, 5e-324, -1.5]],
    ['characters of all planes', { 'é😀\u2028': '\t\u0001\uFFFF' }],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
    ['null', null],
  ])('is accepted with %s, and stored unchanged', (_what, payload) => {
    expect(target.schema.parse({ kind: 'http', url: URL_GIVEN, payload }).payload).toBe(payload)
  })

  test('is written in the same way after it was stored and read, whatever its keys', () => {
    const text = '{"constructor":1,"__proto__":{"polluted":true},"b":2,"a":3}'
    const spec = target.schema.parse({ kind: 'http', url: URL_GIVEN, payload: JSON.parse(text) as unknown })

    expect(JSON.stringify(target.schema.parse(JSON.parse(JSON.stringify(spec))).payload)).toBe(text)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('the HTTP target', () => {
  test('retries for 2 h 15 min, for at most 6 h with any base, and within the retention of its keys', () => {
    const { maxAttempts, baseSeconds, capSeconds } = target.policy.retry
    const waits = Array.from({ length: maxAttempts - 1 }, (_, n) => Math.min(baseSeconds * 2 ** n, capSeconds))

    expect(target.policy.retry).toEqual({ maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 })
    expect(waits.reduce((sum, wait) => sum + wait)).toBe(8130)
    expect(maxAttempts * capSeconds).toBe(6 * 3600)
    expect(target.idempotencyRetentionSeconds).toBe(86_400)
  })

  test.each([
    ['maxBodyBytes', 0],
    ['maxBodyBytes', 1.5],
    ['connections', 0],
    ['connections', Number.NaN],
    ['idempotencyRetentionSeconds', 21_599],
  ])('does not start with %s %d', (name, value) => {
    expect(() => createHttpTarget({ allowedHosts: [], [name]: value })).toThrow(`expected \`${name}\` to be`)
  })

  test('accepts every documented method', () => {
    expect(HTTP_METHODS.filter((method) => pathsOf({ method }).length > 0)).toEqual([])
  })
})
