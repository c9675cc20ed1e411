import type { SecretName, SecretStore } from '@carillon/core'
import { startHttpServer } from '@carillon/outbound/testing'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'

import { attemptAt, dispatchTo, draftOf, httpTarget, NO_LIMITS, RUN_ID } from './attempt.ts'

const TOKEN = 'tok_4mQ2/canary+secret=='
const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const BEARER = { kind: 'bearer', secretRef: 'digest-token' }
const HMAC = { kind: 'hmac', secretRef: 'digest-key' }

/** A store with these secrets in every project, and a record of the requests for them. */
function storeOf(secrets: Readonly<Record<string, string>>): SecretStore & { readonly asked: readonly SecretName[] } {
  const asked: SecretName[] = []
  return {
    asked,
    resolve: async (secret) => {
      asked.push(secret)
      return secrets[secret.name]
    },
  }
}

const SECRETS = storeOf({ 'digest-token': TOKEN, 'digest-key': SIGNING_SECRET })

function webhookHeadersOf(headers: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => entry[0].startsWith('webhook-')),
  )
}

describe('the credentials of a request', () => {
  test('a bearer token is read from the store for the tenant and the project of the schedule', async () => {
    await using server = await startHttpServer((response) => response.end())
    const secrets = storeOf({ 'digest-token': TOKEN })
    await using target = httpTarget({ secrets })

    await dispatchTo(target, { url: server.origin, auth: BEARER }, { tenantId: 'acme', projectId: 'web' })

    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`)
    expect(secrets.asked).toEqual([{ tenantId: 'acme', projectId: 'web', name: 'digest-token' }])
  })

  test.each([undefined, { kind: 'none' }])(
    'a request with the auth %j carries no credential, and reads no secret',
    async (auth) => {
      await using server = await startHttpServer((response) => response.end())
      const secrets = storeOf({})
      await using target = httpTarget({ secrets })

      expect(await dispatchTo(target, { url: server.origin, auth })).toMatchObject({ kind: 'succeeded' })

      const names = Object.keys(server.requests[0]?.headers ?? {})
      expect(names.filter((name) => name === 'authorization' || name.startsWith('webhook-'))).toEqual([])
      expect(secrets.asked).toEqual([])
    },
  )

  test.each([
    ['a payload', { payload: { é: ['😀', 1.5], z: null } }],
    ['no body', { method: 'GET' }],
  ])('a request with %s is signed, and the reference library accepts its signature', async (_what, input) => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget({ secrets: SECRETS })

    await dispatchTo(target, { url: server.origin, auth: HMAC, ...input })

    const [request] = server.requests
    const headers = webhookHeadersOf(request?.headers)
    const verify = (body: string) => new Webhook(SIGNING_SECRET).verify(body, headers, { jsonParse: false })
    expect(() => verify(String(request?.body))).not.toThrow()
    expect(() => verify(`${String(request?.body)} `)).toThrow('No matching signature')
    expect(request?.headers).not.toHaveProperty('authorization')
  })

  test('all attempts have the same signed id, and each has the time of its own attempt', async () => {
    await using server = await startHttpServer((response) => response.end())
    const times = [1_798_135_200_999, 1_798_135_230_000]
    await using target = httpTarget({ secrets: SECRETS, now: () => times.shift() ?? 0 })

    for (const attempt of [1, 2]) await dispatchTo(target, { url: server.origin, auth: HMAC }, { attempt })

    const sent = server.requests.map(({ headers }) => webhookHeadersOf(headers))
    expect(sent.map((headers) => headers['webhook-id'])).toEqual([RUN_ID, RUN_ID])
    expect(sent.map((headers) => headers['webhook-timestamp'])).toEqual(['1798135200', '1798135230'])
    expect(new Set(sent.map((headers) => headers['webhook-signature'])).size).toBe(2)
  })

  test('a new value of a secret is used from the next attempt on', async () => {
    await using server = await startHttpServer((response) => response.end())
    const values = ['first-token', 'second-token']
    await using target = httpTarget({ secrets: { resolve: async () => values.shift() } })

    for (const attempt of [1, 2]) await dispatchTo(target, { url: server.origin, auth: BEARER }, { attempt })

    const sent = server.requests.map(({ headers }) => headers.authorization)
    expect(sent).toEqual(['Bearer first-token', 'Bearer second-token'])
  })
})

describe('no request is sent', () => {
  const unable: SecretStore = {
    resolve: () => Promise.reject(new Error('vault at 10.0.0.7 said hunter2')),
  }

  test.each([
    ['there is no such secret', storeOf({}), BEARER, 'secret_missing', false],
    ['the store fails', unable, HMAC, 'secret_unavailable', true],
    ['a worker was started without a store', undefined, BEARER, 'secret_unavailable', true],
    ['a token has a line end', storeOf({ 'digest-token': 'hunter2\r\nHost: evil' }), BEARER, 'secret_unusable', false],
    ['a token has a blank', storeOf({ 'digest-token': 'hunter2 ' }), BEARER, 'secret_unusable', false],
    ['a token is not ASCII', storeOf({ 'digest-token': 'hunter2é' }), BEARER, 'secret_unusable', false],
    [
      'a token is too short to be recognised in an answer',
      storeOf({ 'digest-token': 'hunter2' }),
      BEARER,
      'secret_unusable',
      false,
    ],
    ['a token is empty', storeOf({ 'digest-token': '' }), BEARER, 'secret_unusable', false],
    ['a token is too long', storeOf({ 'digest-token': 'x'.repeat(8193) }), BEARER, 'secret_unusable', false],
    ['a secret contains no signing key', storeOf({ 'digest-key': 'hunter2' }), HMAC, 'secret_unusable', false],
  ])('no request is sent if %s', async (_what, secrets, auth, code, retryable) => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget(secrets === undefined ? {} : { secrets })

    const outcome = await dispatchTo(target, { url: server.origin, auth })

    expect(outcome).toMatchObject({ kind: 'failed', error: { code }, retryable })
    expect(JSON.stringify(outcome)).toContain(auth.secretRef)
    expect(JSON.stringify(outcome)).not.toMatch(/hunter2|10\.0\.0\.7/)
    expect(server.connectionCount).toBe(0)
  })

  test('no request is sent if the attempt is cancelled while the store is read, and the store is not awaited', async () => {
    await using server = await startHttpServer((response) => response.end())
    const controller = new AbortController()
    const { promise: never } = Promise.withResolvers<string>()
    const resolve = (): Promise<string> => {
      controller.abort()
      return never
    }
    await using target = httpTarget({ secrets: { resolve } })

    const outcome = target.dispatch(attemptAt({ url: server.origin, auth: BEARER }), controller.signal)

    expect(await outcome).toEqual({ kind: 'cancelled' })
    expect(server.connectionCount).toBe(0)
  })

  test('no secret is read for a host that may not be called', async () => {
    const secrets = storeOf({ 'digest-token': TOKEN })
    await using target = httpTarget({ secrets })

    await dispatchTo(target, { url: 'http://example.com/', auth: BEARER })

    expect(secrets.asked).toEqual([])
  })
})

describe('a token that the answer repeats', () => {
  test.each([
    ['as text', 200, 'text/plain', `you sent ${TOKEN}, twice: ${TOKEN}`],
    [
      'in JSON',
      200,
      'application/json',
      JSON.stringify({ headers: { Authorization: `Bearer ${TOKEN}` }, [TOKEN]: [TOKEN] }),
    ],
    [
      'in JSON with other escapes',
      200,
      'application/json',
      `{"token":"${TOKEN.replace('/', '\\/').replace('=', '\\u003d')}"}`,
    ],
    ['in a refusal', 401, 'text/plain', `bad token: ${TOKEN}`],
    ['where the ledger cuts it', 200, 'text/plain', `${'x'.repeat(4096 - 12)}${TOKEN}`],
  ])('is not stored in the ledger: %s', async (_how, status, type, body) => {
    await using server = await startHttpServer((response) =>
      response.writeHead(status, { 'Content-Type': type, Location: `/?token=${TOKEN}` }).end(body),
    )
    await using target = httpTarget({ secrets: SECRETS })

    const outcome = JSON.stringify(await dispatchTo(target, { url: server.origin, auth: BEARER }))

    expect(outcome).toContain('(withheld)')
    expect(outcome).not.toContain(TOKEN.slice(0, 6))
    expect(outcome).not.toContain(TOKEN.slice(-6))
  })

  test('is replaced without a change to the rest of the answer', async () => {
    await using server = await startHttpServer((response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(`{"a":[1,null,true,"x"],"t":"<${TOKEN}>"}`),
    )
    await using target = httpTarget({ secrets: SECRETS })

    expect(await dispatchTo(target, { url: server.origin, auth: BEARER })).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: { a: [1, null, true, 'x'], t: '<(withheld)>' } },
    })
  })
})

describe('a token that the answer repeats in another form', () => {
  const odd = String.raw`k"e\\y/<&'>+%=Zz09`
  const plain = 'k3y-4-the-digest'
  const jsonOf = (text: string): string => JSON.stringify(text).slice(1, -1)
  const unicodeOf = (text: string): string =>
    text.replace(/\W/g, (char) => `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`)
  const htmlOf = (text: string): string =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#039;')
  const base64Of = (text: string): string => Buffer.from(text).toString('base64')

  test.each([
    ['as it is', odd, odd],
    ['escaped for JSON', odd, jsonOf(odd)],
    ['escaped for JSON with slashes', odd, jsonOf(odd).replaceAll('/', String.raw`\/`)],
    ['escaped for JSON by numbers', odd, unicodeOf(odd)],
    ['escaped for a URL', odd, encodeURIComponent(odd)],
    ['escaped for a URL in small letters', odd, encodeURIComponent(odd).replace(/%../g, (form) => form.toLowerCase())],
    ['escaped for HTML', odd, htmlOf(odd)],
    ['escaped for HTML by numbers', odd, odd.replace(/\W/g, (char) => `&#x${char.charCodeAt(0).toString(16)};`)],
    ['in base64', odd, base64Of(odd)],
    ['in base64 with its scheme', odd, base64Of(`Bearer ${odd}`)],
    ['in base64 for a URL', odd, Buffer.from(odd).toString('base64url')],
    ['in base64, escaped for a URL', odd, encodeURIComponent(base64Of(odd))],
    ...['', 'a', 'ab', 'abc'].map((user): [string, string, string] => [
      `in base64 after the user ${JSON.stringify(user)}`,
      plain,
      base64Of(`${user}:${plain}:${user}`),
    ]),
  ])('is not stored in the ledger: %s', async (_how, token, repeated) => {
    const answers = [
      `<${repeated}>`,
      JSON.stringify({ said: `<${repeated}>` }),
      `${'x'.repeat(4096 + 3 - repeated.length)}${repeated}`,
    ]
    await using server = await startHttpServer((response) => {
      const body = answers.shift() ?? ''
      response.writeHead(200, { 'Content-Type': body.startsWith('{') ? 'application/json' : 'text/plain' }).end(body)
    })
    await using target = httpTarget({ secrets: storeOf({ 'digest-token': token }) })

    for (const attempt of [1, 2, 3]) {
      const outcome = await dispatchTo(target, { url: server.origin, auth: BEARER }, { attempt })
      const kept = JSON.stringify(outcome)
      expect(kept).toContain('(withheld)')
      // The rest may contain the user of Basic, and bits of the characters at either end.
      const rest = kept.slice(kept.indexOf('"body"')).replaceAll('(withheld)', '')
      expect(rest).not.toContain(repeated.slice(6, 12))
      expect(rest).not.toContain(repeated.slice(-12, -6))
    }
  })

  test.each([
    ['a part of the token', 'k3y-4-the-diges, and more'],
    ['a text that begins like the token', 'k3y-4-the-digits'],
    ['other escapes', String.raw`\u006b3y %6b3y &#x6b;3y`],
  ])('is not found in %s', async (_what, body) => {
    await using server = await startHttpServer((response) =>
      response.writeHead(200, { 'Content-Type': 'text/plain' }).end(body),
    )
    await using target = httpTarget({ secrets: storeOf({ 'digest-token': plain }) })

    expect(await dispatchTo(target, { url: server.origin, auth: BEARER })).toMatchObject({ result: { body } })
  })
})

describe('without a store of secrets', () => {
  test.each([BEARER, HMAC])('a spec with %j is refused with a remedy', (auth) => {
    const draft = draftOf({ url: 'http://127.0.0.1/', auth })

    expect(httpTarget().check?.(draft, NO_LIMITS)).toEqual([
      { path: 'auth', message: expect.stringMatching(/^expected no auth, .+ set up a secret store$/) as string },
    ])
    expect(httpTarget({ secrets: SECRETS }).check?.(draft, NO_LIMITS)).toEqual([])
  })

  test('a spec without a secret is accepted', () => {
    const draft = draftOf({ url: 'http://127.0.0.1/', auth: { kind: 'none' } })

    expect(httpTarget().check?.(draft, NO_LIMITS)).toEqual([])
  })
})
