import type { ServerResponse } from 'node:http'

import { afterAll, describe, expect, onTestFinished, test } from 'vitest'

import { JwtKeysUnavailableError } from '../../src/auth/issuer-keys.ts'
import { createTestApp } from '../http/test-app.ts'
import { createKey, createVerifierWorld, startJwksServer, type JwksServer, type VerifierWorld } from './issuer.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const [first, second] = await Promise.all([createKey('first'), createKey('second')])
const elsewhere = await startJwksServer(first)
afterAll(() => elsewhere[Symbol.asyncDispose]())

async function setup(): Promise<VerifierWorld & { readonly jwks: JwksServer }> {
  const jwks = await startJwksServer(first)
  onTestFinished(() => jwks[Symbol.asyncDispose]())
  return { ...createVerifierWorld(jwks.url), jwks }
}

/** Breaks the connection. */
const isDown = (response: ServerResponse): void => void response.destroy()
/** Never answers. */
const hangs = (): void => {}

describe('fetching the keys of the issuer', () => {
  test('concurrent requests share one fetch of the keys', async () => {
    const { jwks, verifier, sign } = await setup()
    const token = await sign(first)

    const identities = await Promise.all(Array.from({ length: 100 }, () => verifier.verify(token)))

    expect(identities.filter((identity) => identity === undefined)).toEqual([])
    expect(jwks.asked()).toBe(1)
  })

  test('keys are fetched again in the background after ten minutes', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    clock.advance(10 * MINUTE - 1)
    await verifier.verify(await sign(first))
    expect(jwks.asked()).toBe(1)

    clock.advance(1)
    jwks.misbehave = hangs
    const asked = jwks.nextAsked()
    const identity = await verifier.verify(await sign(first))
    await asked

    expect(identity?.caller.subject).toBe('user:alice')
    expect(jwks.asked()).toBe(2)
  })

  test('a token that names an unknown key causes a fetch, but not within 30 s of the last fetch', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.published = [first.publicJwk, second.publicJwk]

    clock.advance(29_999)
    expect(await verifier.verify(await sign(second))).toBeUndefined()
    clock.advance(1)
    expect(await verifier.verify(await sign(second))).toMatchObject({ caller: { subject: 'user:alice' } })

    expect(await verifier.verify(await sign(first))).toBeDefined()
    expect(jwks.asked()).toBe(2)
  })
})

describe('a key that the issuer has withdrawn', () => {
  test('a withdrawn key is refused once the keys are fetched again', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.published = [second.publicJwk]
    clock.advance(10 * MINUTE)

    // The second key is unknown, so this call waits for the fetch that it starts.
    expect(await verifier.verify(await sign(second))).toBeDefined()
    expect(await verifier.verify(await sign(first))).toBeUndefined()
  })

  test('a withdrawn key is refused for the first request after a quiet time, and for all concurrent requests', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.published = [second.publicJwk]
    clock.advance(20 * MINUTE)
    const token = await sign(first)

    const identities = await Promise.all([1, 2, 3].map(() => verifier.verify(token)))

    expect(identities).toEqual([undefined, undefined, undefined])
  })
})

describe('while the issuer is down', () => {
  test.each([
    ['the connection breaks', isDown],
    ['no answer comes', hangs],
    ['it answers 500', (response: ServerResponse) => void response.writeHead(500).end('{}')],
    ['it answers HTML', (response: ServerResponse) => void response.end('<html>')],
    ['it answers JSON that is not a key set', (response: ServerResponse) => void response.end('{"keys":7}')],
  ])('known keys stay valid for an hour, and the issuer is asked at most every 30 s (%s)', async (_how, misbehave) => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.misbehave = misbehave

    for (let at = 0; at < HOUR; at += 10_000) {
      clock.advance(10_000)
      expect(await verifier.verify(await sign(first))).toMatchObject({ caller: { subject: 'user:alice' } })
    }

    expect(jwks.asked() - 1).toBeGreaterThan(1)
    // A fetch is due every 30 s from the tenth to the sixtieth minute, both included.
    expect(jwks.asked() - 1).toBeLessThanOrEqual(50 * 2 + 1)
  })

  test('known keys stay valid for a day and no longer', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.misbehave = isDown

    clock.advance(24 * HOUR)
    expect(await verifier.verify(await sign(first))).toBeDefined()
    clock.advance(1001)
    await expect(verifier.verify(await sign(first))).rejects.toThrow(JwtKeysUnavailableError)

    jwks.misbehave = null
    clock.advance(1000)
    expect(await verifier.verify(await sign(first))).toBeDefined()
  })

  test('a flood of tokens with unknown keys causes one fetch in 30 s', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.misbehave = isDown
    clock.advance(30_000)

    for (let at = 0; at < 100; at += 1) {
      expect(await verifier.verify(await sign(second, {}, { kid: `unknown-${at}` }))).toBeUndefined()
    }

    expect(jwks.asked()).toBe(2)
  })

  test('before the first fetch has succeeded, requests with a token get 503 and other requests are answered', async () => {
    const { jwks, verifier, clock, sign, log } = await setup()
    jwks.misbehave = isDown
    await using world = await createTestApp({ jwt: verifier })
    const token = await sign(first)
    const ask = async (key?: string) => world.request('GET', '/api/v1/schedules', key === undefined ? {} : { key })

    const refused = await ask(token)

    expect(refused.json()).toMatchObject({ status: 503, code: 'unavailable' })
    expect(refused.headers['retry-after']).toBe('1')
    expect((await ask()).statusCode).toBe(200)
    expect(log.join('')).toContain('"event":"jwt.keys_not_fetched"')

    // The verifier does not fetch again at once: otherwise every request would cause a fetch.
    jwks.misbehave = null
    expect((await ask(token)).statusCode).toBe(503)
    expect(jwks.asked()).toBe(1)
    clock.advance(1000)
    expect((await ask(token)).statusCode).toBe(200)
  })
})

describe('limits on a fetch of the keys', () => {
  async function failureOf({ verifier, sign }: VerifierWorld): Promise<unknown> {
    const failure: unknown = await verifier.verify(await sign(first)).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(JwtKeysUnavailableError)
    return (failure as JwtKeysUnavailableError).cause
  }

  test('an answer of more than 1 MiB is refused', async () => {
    const world = await setup()
    const keys = JSON.stringify({ keys: [first.publicJwk] })
    world.jwks.misbehave = (response) => void response.end(keys.padEnd(1024 * 1024 + 1))
    expect(await failureOf(world)).toMatchObject({ message: 'expected an answer of at most 1048576 bytes, got more' })

    world.jwks.misbehave = (response) => void response.end(keys.padEnd(1024 * 1024))
    world.clock.advance(1000)
    expect(await world.verifier.verify(await world.sign(first))).toBeDefined()
  })

  test('a fetch is abandoned after five seconds', async () => {
    const world = await setup()
    world.jwks.misbehave = (response) => void response.write('{"keys":')
    const asked = world.jwks.nextAsked()
    const failure = failureOf(world)
    await asked

    world.clock.advance(5000)

    expect(await failure).toMatchObject({ message: 'expected an answer within 5000 ms, got none' })
  })

  test('a redirect is not followed', async () => {
    const world = await setup()
    world.jwks.misbehave = (response) => void response.writeHead(302, { location: elsewhere.url }).end()

    expect(await failureOf(world)).toMatchObject({ message: 'expected an answer with status 200, got 302' })
    expect(elsewhere.asked()).toBe(0)
  })
})
