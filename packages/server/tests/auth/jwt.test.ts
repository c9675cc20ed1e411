import { afterAll, describe, expect, test } from 'vitest'

import { createTestApp } from '../http/test-app.ts'
import { createKey, createVerifierWorld, startJwksServer } from './issuer.ts'

const key = await createKey('current')
const jwks = await startJwksServer(key)
afterAll(() => jwks[Symbol.asyncDispose]())

test.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('a token signed by %s is accepted by default', async (alg) => {
  const signing = await createKey('any', alg)
  await using server = await startJwksServer(signing)
  const { verifier, sign } = createVerifierWorld(server.url)

  expect(await verifier.verify(await sign(signing))).toEqual({
    caller: { tenantId: 'acme', projectId: 'web', subject: 'user:alice' },
    role: 'admin',
    keyId: 'jwt:acme/web/user:alice',
    isInstallation: false,
  })
})

test('only the configured algorithms are accepted', async () => {
  const pinned = createVerifierWorld(jwks.url, { algorithms: ['ES256'] })

  expect(await pinned.verifier.verify(await pinned.sign(key))).toBeUndefined()
})

test('a token without a key id is accepted if the issuer has one matching key, and refused if it has several', async () => {
  const other = await createKey('other')
  await using server = await startJwksServer(key)
  const { verifier, sign, clock } = createVerifierWorld(server.url)
  const token = await sign(key, {}, { kid: undefined })
  expect(await verifier.verify(token)).toBeDefined()

  server.published = [key.publicJwk, other.publicJwk]
  clock.advance(20 * 60_000)

  expect(await verifier.verify(await sign(key, {}, { kid: undefined }))).toBeUndefined()
})

test('a token longer than 16 KiB is refused before it is parsed', async () => {
  await using server = await startJwksServer(key)
  const { verifier, sign } = createVerifierWorld(server.url)
  const long = await sign(key, { padding: 'x'.repeat(16 * 1024) })

  expect(await verifier.verify(long)).toBeUndefined()
  expect(server.asked()).toBe(0)
})

test('an unusable key of the issuer does not cause a server error', async () => {
  await using server = await startJwksServer()
  server.published = [{ kty: 'RSA', kid: 'broken', n: 'AQAB', e: 'AQAB' }]
  const { verifier, sign } = createVerifierWorld(server.url)

  expect(await verifier.verify(await sign(key, {}, { kid: 'broken' }))).toBeUndefined()
})

describe('keys beside tokens', () => {
  test('the admin key is accepted, even if it looks like a token', async () => {
    const { verifier, sign } = createVerifierWorld(jwks.url)
    const adminKey = 'an.admin-key-with.two-dots'
    await using world = await createTestApp({ adminKey, jwt: verifier })
    const { key: made } = await world.admin.keys.create({ project: 'default', subject: 'user:bob', role: 'member' })

    for (const shown of [adminKey, made, await sign(key)]) {
      expect((await world.request('GET', '/api/v1/schedules', { key: shown })).statusCode).toBe(200)
    }
  })

  test('a token is refused if the settings name no issuer', async () => {
    const { sign } = createVerifierWorld(jwks.url)
    await using world = await createTestApp()

    expect((await world.request('GET', '/api/v1/schedules', { key: await sign(key) })).statusCode).toBe(401)
  })

  test('a token cannot create keys for other projects, whatever its claims', async () => {
    const { verifier, sign } = createVerifierWorld(jwks.url)
    await using world = await createTestApp({ jwt: verifier })
    const client = world.client(await sign(key, { tenant: 'default', project: 'default', isInstallation: true }))
    const other = { tenant: 'acme', project: 'web', subject: 'user:bob', role: 'admin' } as const

    await expect(client.keys.create(other)).rejects.toMatchObject({ status: 403, code: 'admin_key_required' })
    expect((await client.schedules.list()).items).toEqual([])
  })

  test('the rate limit counts the requests of a subject in a project together, over all of its tokens', async () => {
    const { verifier, sign, clock } = createVerifierWorld(jwks.url)
    await using world = await createTestApp({ requestsPerMinute: 2, jwt: verifier })
    const statusOf = async (claims: object): Promise<number> => {
      clock.advance(1000)
      const token = await sign(key, { ...claims })
      return (await world.request('GET', '/api/v1/schedules', { key: token })).statusCode
    }

    expect([await statusOf({}), await statusOf({}), await statusOf({})]).toEqual([200, 200, 429])
    expect(await statusOf({ sub: 'bob' })).toBe(200)
    expect(await statusOf({ project: 'other' })).toBe(200)
  })
})
