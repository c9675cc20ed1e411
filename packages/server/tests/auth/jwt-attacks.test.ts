import { createHmac, randomBytes } from 'node:crypto'

import { exportSPKI, importJWK, type CryptoKey } from 'jose'
import { afterAll, describe, expect, test } from 'vitest'

import { createTestApp } from '../http/test-app.ts'
import { createKey, createVerifierWorld, rawToken, soundClaims, startJwksServer } from './issuer.ts'

// All attacks go over HTTP. Each one changes one thing in a token that is otherwise accepted.
const key = await createKey('current')
const attackerKey = await createKey('current')
const [jwks, attacker] = await Promise.all([startJwksServer(key), startJwksServer(attackerKey)])
const { verifier, clock, sign, seconds, log } = createVerifierWorld(jwks.url)
const world = await createTestApp({ jwt: verifier })
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await jwks[Symbol.asyncDispose]()
  await attacker[Symbol.asyncDispose]()
})

async function statusOf(token: string): Promise<number> {
  const { statusCode } = await world.request('GET', '/api/v1/schedules', { key: token })
  return statusCode
}

async function expectRefused(token: string): Promise<void> {
  const answer = await world.request('GET', '/api/v1/schedules', { key: token })
  expect(answer.json()).toMatchObject({ status: 401, code: 'unauthenticated' })
  expect(answer.headers['www-authenticate']).toBe('Bearer')
  expect(await statusOf(await sign(key))).toBe(200)
}

test('a valid token is accepted, and its claims determine the subject, the project and the role', async () => {
  const { statusCode } = await world.request('POST', '/api/v1/schedules', {
    key: await sign(key, { role: 'member' }),
    body: {},
  })

  expect(await statusOf(await sign(key))).toBe(200)
  expect(statusCode).toBe(403)
})

describe('unsigned tokens', () => {
  test.each(['none', 'None', 'NONE', 'nOnE', ''])(
    'a token without a signature and with the algorithm %j is refused',
    async (alg) => {
      const claims = soundClaims(seconds())

      await expectRefused(rawToken({ alg, kid: 'current' }, claims, () => Buffer.alloc(0)))
      await expectRefused(rawToken({ alg, kid: 'current' }, claims, () => randomBytes(256)))
      await expectRefused(rawToken({ alg }, claims, () => Buffer.alloc(0)))
    },
  )

  test('a token is refused if its signature was cut off or is empty', async () => {
    const token = await sign(key)

    await expectRefused(token.slice(0, token.lastIndexOf('.') + 1))
    await expectRefused(token.slice(0, token.lastIndexOf('.')))
  })
})

describe('key confusion', async () => {
  const pem = await exportSPKI((await importJWK(key.publicJwk, 'RS256')) as CryptoKey)
  const { n = '' } = key.publicJwk
  const secrets: [string, string | Buffer][] = [
    ['its PEM', pem],
    ['its PEM with a line break at the end', `${pem}\n`],
    ['its PEM without blanks around', pem.trim()],
    ['its DER', Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64')],
    ['its JWK', JSON.stringify(key.publicJwk)],
    ['its modulus', Buffer.from(n, 'base64url')],
    ['nothing', ''],
  ]

  test.each(secrets)(
    'a token that is signed with the public key as a shared secret is refused: %s',
    async (_what, secret) => {
      for (const [alg, hash] of [
        ['HS256', 'sha256'],
        ['HS384', 'sha384'],
        ['HS512', 'sha512'],
      ] as const) {
        const hmac = (input: string): Buffer => createHmac(hash, secret).update(input).digest()
        await expectRefused(rawToken({ alg, kid: 'current', typ: 'JWT' }, soundClaims(seconds()), hmac))
        await expectRefused(rawToken({ alg, typ: 'JWT' }, soundClaims(seconds()), hmac))
      }
    },
  )
})

describe('genuine tokens that do not meet a rule', () => {
  test.each([
    ['of another issuer', { iss: 'https://evil.example.com/' }],
    ['of an issuer whose name only begins the same', { iss: 'https://login.example.com/evil' }],
    ['of two issuers', { iss: ['https://login.example.com/'] }],
    ['of no issuer', { iss: undefined }],
    ['for another audience', { aud: 'billing' }],
    ['for other audiences', { aud: ['billing', 'carillon-staging'] }],
    ['for no audience', { aud: undefined }],
  ])('a genuine token %s is refused', async (_what, claims) => {
    await expectRefused(await sign(key, claims))
  })

  test('a token that expired 30 s ago or earlier is refused: 30 s is the tolerance between clocks', async () => {
    await expectRefused(await sign(key, { exp: seconds() - 61 }))
    await expectRefused(await sign(key, { exp: seconds() - 30 }))
    expect(await statusOf(await sign(key, { exp: seconds() - 29 }))).toBe(200)
  })

  test('a token that becomes valid in more than 30 s is refused', async () => {
    await expectRefused(await sign(key, { nbf: seconds() + 61 }))
    await expectRefused(await sign(key, { nbf: seconds() + 31 }))
    expect(await statusOf(await sign(key, { nbf: seconds() + 30 }))).toBe(200)
  })

  test.each([
    ['has no expiry', undefined],
    ['states its expiry as a date', '2031-01-01T00:00:00Z'],
    ['has the expiry null', null],
  ])('a token that %s is refused', async (_what, exp) => {
    await expectRefused(await sign(key, { exp }))
  })

  test.each(['logout+jwt', 'application/logout+jwt', 'dpop+jwt', 'secevent+jwt', 'JOSE', 'JWT ', '', 7, null, ['JWT']])(
    'a token of the type %j is refused',
    async (typ) => {
      await expectRefused(await sign(key, {}, { typ }))
    },
  )

  const accepted = ['JWT', 'jwt', 'Jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+JWT', undefined]
  test.each(accepted)('a token of the type %j is accepted', async (typ) => {
    expect(await statusOf(await sign(key, {}, { typ }))).toBe(200)
  })

  test.each([
    ['an unknown critical extension', { crit: ['vendor'], vendor: 'x' }],
    ['a known critical extension that Carillon does not support', { crit: ['b64'], b64: true }],
  ])('a token with %s is refused', async (_what, header) => {
    await expectRefused(await sign(key, {}, header))
  })

  test('a token is refused if its algorithm is not pinned, even if its key is published', async () => {
    const rs512 = await createKey('rs512', 'RS512')
    jwks.published = [key.publicJwk, rs512.publicJwk]
    clock.advance(30_000)

    await expectRefused(await sign(rs512))

    jwks.published = [key.publicJwk]
  })
})

describe('forged tokens', () => {
  test('a token with altered claims is refused', async () => {
    const [header = '', , signature = ''] = (await sign(key, { role: 'member' })).split('.')
    const altered = Buffer.from(JSON.stringify(soundClaims(seconds()))).toString('base64url')

    await expectRefused(`${header}.${altered}.${signature}`)
  })

  test('a token with an altered header is refused', async () => {
    const [, claims = '', signature = ''] = (await sign(key)).split('.')
    const altered = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'current', typ: 'at+jwt' })).toString('base64url')

    await expectRefused(`${altered}.${claims}.${signature}`)
  })

  test('a token that is signed by another key with the same key id is refused', async () => {
    await expectRefused(await sign(attackerKey))
    await expectRefused(await sign(attackerKey, {}, { kid: undefined }))
  })

  test.each([
    ['jku', { jku: attacker.url }],
    ['x5u', { x5u: attacker.url }],
    ['jwk', { jwk: attackerKey.publicJwk }],
    ['x5c', { x5c: [attackerKey.publicJwk.n ?? ''] }],
    ['all of these headers', { jku: attacker.url, x5u: attacker.url, jwk: attackerKey.publicJwk }],
  ])('a token that brings its own key in %s is refused, and that key is not fetched', async (_what, header) => {
    await expectRefused(await sign(attackerKey, {}, header))
    await expectRefused(await sign(attackerKey, {}, { ...header, kid: 'of-the-attacker' }))
    await expectRefused(await sign(attackerKey, {}, { ...header, kid: attacker.url }))

    expect(attacker.asked()).toBe(0)
  })

  test.each(['..', 'a.b.c', '.e30.', 'e30.e30.e30', 'bnVsbA.bnVsbA.bnVsbA', `${'a'.repeat(4000)}.b.c`])(
    'a text that is not a token is refused: %.40s',
    async (token) => {
      await expectRefused(token)
    },
  )
})

test('the log names the rule that a token broke, and does not quote the token', async () => {
  const token = await sign(key, { aud: 'a-private-audience' })

  await statusOf(token)

  expect(log.at(-1)).toContain('"reason":"ERR_JWT_CLAIM_VALIDATION_FAILED aud"')
  expect(log.join('')).not.toContain('a-private-audience')
  expect(log.join('')).not.toContain(token.slice(0, 20))
})

describe('a flood of tokens with unknown keys', () => {
  test('1,000 tokens with unknown keys cause one fetch in 30 s, and valid tokens stay accepted', async () => {
    const sound = await sign(key, { exp: seconds() + 3600 })
    expect(await statusOf(sound)).toBe(200)
    clock.advance(30_000)
    const before = jwks.asked()
    const flood = Array.from({ length: 1000 }, () =>
      rawToken({ alg: 'RS256', kid: randomBytes(8).toString('hex') }, soundClaims(seconds()), () => randomBytes(256)),
    )

    const statuses = await Promise.all(
      flood.flatMap((token, at) => [token, ...(at % 10 === 0 ? [sound] : [])]).map(statusOf),
    )

    // More than 600 requests a minute without a valid key are refused for their rate.
    expect(statuses.filter((status) => status === 200)).toHaveLength(100)
    expect(statuses.filter((status) => status === 401 || status === 429)).toHaveLength(1000)
    expect(jwks.asked() - before).toBe(1)

    clock.advance(29_999)
    expect(await verifier.verify(flood[0] ?? '')).toBeUndefined()
    expect(jwks.asked() - before).toBe(1)
    clock.advance(1)
    expect(await verifier.verify(flood[0] ?? '')).toBeUndefined()
    expect(jwks.asked() - before).toBe(2)
  })
})
