import { createHmac, randomBytes } from 'node:crypto'

import { exportSPKI, importJWK, type CryptoKey } from 'jose'
import { afterAll, describe, expect, test } from 'vitest'

import { createTestApp } from '../http/test-app.ts'
import { createKey, createVerifierWorld, rawToken, soundClaims, startJwksServer } from './issuer.ts'

// Over HTTP. Every attack changes one thing of a token that would be accepted.
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

test('a valid token is accepted, with the subject, the project and the role in its claims', async () => {
  const { statusCode } = await world.request('POST', '/api/v1/schedules', {
    key: await sign(key, { role: 'member' }),
    body: {},
  })

  expect(await statusOf(await sign(key))).toBe(200)
  expect(statusCode).toBe(403)
})

describe('a token without a signature is refused', () => {
  test.each(['none', 'None', 'NONE', 'nOnE', ''])('with alg %j', async (alg) => {
    const claims = soundClaims(seconds())

    await expectRefused(rawToken({ alg, kid: 'current' }, claims, () => Buffer.alloc(0)))
    await expectRefused(rawToken({ alg, kid: 'current' }, claims, () => randomBytes(256)))
    await expectRefused(rawToken({ alg }, claims, () => Buffer.alloc(0)))
  })

  test('if the signature was cut off, or is empty', async () => {
    const token = await sign(key)

    await expectRefused(token.slice(0, token.lastIndexOf('.') + 1))
    await expectRefused(token.slice(0, token.lastIndexOf('.')))
  })
})

describe('key confusion: a token signed with the public key as a shared secret is refused', async () => {
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

  test.each(secrets)('%s', async (_what, secret) => {
    for (const [alg, hash] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
    ] as const) {
      const hmac = (input: string): Buffer => createHmac(hash, secret).update(input).digest()
      await expectRefused(rawToken({ alg, kid: 'current', typ: 'JWT' }, soundClaims(seconds()), hmac))
      await expectRefused(rawToken({ alg, typ: 'JWT' }, soundClaims(seconds()), hmac))
    }
  })
})

describe('a genuine token is refused', () => {
  test.each([
    ['of another issuer', { iss: 'https://evil.example.com/' }],
    ['of an issuer whose name only begins the same', { iss: 'https://login.example.com/evil' }],
    ['of two issuers', { iss: ['https://login.example.com/'] }],
    ['of no issuer', { iss: undefined }],
    ['for another audience', { aud: 'billing' }],
    ['for other audiences', { aud: ['billing', 'carillon-staging'] }],
    ['for no audience', { aud: undefined }],
  ])('%s', async (_what, claims) => {
    await expectRefused(await sign(key, claims))
  })

  test('that expired 61 s ago, or more than the 30 s by which clocks may differ', async () => {
    await expectRefused(await sign(key, { exp: seconds() - 61 }))
    await expectRefused(await sign(key, { exp: seconds() - 30 }))
    expect(await statusOf(await sign(key, { exp: seconds() - 29 }))).toBe(200)
  })

  test('that is valid in 61 s only, or in more than those 30 s', async () => {
    await expectRefused(await sign(key, { nbf: seconds() + 61 }))
    await expectRefused(await sign(key, { nbf: seconds() + 31 }))
    expect(await statusOf(await sign(key, { nbf: seconds() + 30 }))).toBe(200)
  })

  test.each([
    ['does not say when it expires', undefined],
    ['says it in words', '2031-01-01T00:00:00Z'],
    ['says nothing', null],
  ])('that %s', async (_what, exp) => {
    await expectRefused(await sign(key, { exp }))
  })

  test.each(['logout+jwt', 'application/logout+jwt', 'dpop+jwt', 'secevent+jwt', 'JOSE', 'JWT ', '', 7, null, ['JWT']])(
    'of the type %j',
    async (typ) => {
      await expectRefused(await sign(key, {}, { typ }))
    },
  )

  const accepted = ['JWT', 'jwt', 'Jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+JWT', undefined]
  test.each(accepted)('but not of the type %j', async (typ) => {
    expect(await statusOf(await sign(key, {}, { typ }))).toBe(200)
  })

  test.each([
    ['that nobody knows', { crit: ['vendor'], vendor: 'x' }],
    ['that is known, but not here', { crit: ['b64'], b64: true }],
  ])('with an extension that must be understood: one %s', async (_what, header) => {
    await expectRefused(await sign(key, {}, header))
  })

  test('signed by an algorithm that is not pinned, though its key is published', async () => {
    const rs512 = await createKey('rs512', 'RS512')
    jwks.published = [key.publicJwk, rs512.publicJwk]
    clock.advance(30_000)

    await expectRefused(await sign(rs512))

    jwks.published = [key.publicJwk]
  })
})

describe('a forged token is refused', () => {
  test('whose claims were altered', async () => {
    const [header = '', , signature = ''] = (await sign(key, { role: 'member' })).split('.')
    const altered = Buffer.from(JSON.stringify(soundClaims(seconds()))).toString('base64url')

    await expectRefused(`${header}.${altered}.${signature}`)
  })

  test('whose header was altered', async () => {
    const [, claims = '', signature = ''] = (await sign(key)).split('.')
    const altered = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'current', typ: 'at+jwt' })).toString('base64url')

    await expectRefused(`${altered}.${claims}.${signature}`)
  })

  test('signed by another key that calls itself the same', async () => {
    await expectRefused(await sign(attackerKey))
    await expectRefused(await sign(attackerKey, {}, { kid: undefined }))
  })

  test.each([
    ['jku', { jku: attacker.url }],
    ['x5u', { x5u: attacker.url }],
    ['jwk', { jwk: attackerKey.publicJwk }],
    ['x5c', { x5c: [attackerKey.publicJwk.n ?? ''] }],
    ['all of them', { jku: attacker.url, x5u: attacker.url, jwk: attackerKey.publicJwk }],
  ])('that brings its own key by %s, which is ignored', async (_what, header) => {
    await expectRefused(await sign(attackerKey, {}, header))
    await expectRefused(await sign(attackerKey, {}, { ...header, kid: 'of-the-attacker' }))
    await expectRefused(await sign(attackerKey, {}, { ...header, kid: attacker.url }))

    expect(attacker.asked()).toBe(0)
  })

  test.each(['..', 'a.b.c', '.e30.', 'e30.e30.e30', 'bnVsbA.bnVsbA.bnVsbA', `${'a'.repeat(4000)}.b.c`])(
    'that is none: %.40s',
    async (token) => {
      await expectRefused(token)
    },
  )
})

test('the log names the rule that a token broke, and quotes nothing of the token', async () => {
  const token = await sign(key, { aud: 'a-private-audience' })

  await statusOf(token)

  expect(log.at(-1)).toContain('"reason":"ERR_JWT_CLAIM_VALIDATION_FAILED aud"')
  expect(log.join('')).not.toContain('a-private-audience')
  expect(log.join('')).not.toContain(token.slice(0, 20))
})

describe('a flood of tokens that name 1,000 unknown keys', () => {
  test('makes one fetch of the keys in 30 s, and valid tokens are accepted meanwhile', async () => {
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
