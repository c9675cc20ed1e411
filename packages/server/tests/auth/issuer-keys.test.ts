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

/** The connection breaks. */
const isDown = (response: ServerResponse): void => void response.destroy()
/** No answer ever comes. */
const hangs = (): void => {}

describe('keys are fetched', () => {
  test('once, however many requests wait for them', async () => {
    const { jwks, verifier, sign } = await setup()
    const token = await sign(first)

    const identities = await Promise.all(Array.from({ length: 100 }, () => verifier.verify(token)))

    expect(identities.filter((identity) => identity === undefined)).toEqual([])
    expect(jwks.asked()).toBe(1)
  })

  test('again after ten minutes, in the background', async () => {
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

  test('when a token names a key that came since, but not within 30 s of the last fetch', async () => {
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

describe('a key that the issuer withdrew is refused', () => {
  test('once the keys were fetched again', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.published = [second.publicJwk]
    clock.advance(10 * MINUTE)

    // Not known yet, so it waits for the fetch that it began.
    expect(await verifier.verify(await sign(second))).toBeDefined()
    expect(await verifier.verify(await sign(first))).toBeUndefined()
  })

  test('for the first request after a quiet time, and for all concurrent ones', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.published = [second.publicJwk]
    clock.advance(20 * MINUTE)
    const token = await sign(first)

    const identities = await Promise.all([1, 2, 3].map(() => verifier.verify(token)))

    expect(identities).toEqual([undefined, undefined, undefined])
  })
})

describe('the issuer is down', () => {
  test.each([
    ['nobody answers', isDown],
    ['no answer ends', hangs],
    ['it fails', (response: ServerResponse) => void response.writeHead(500).end('{}')],
    ['it answers junk', (response: ServerResponse) => void response.end('<html>')],
    ['it answers another thing', (response: ServerResponse) => void response.end('{"keys":7}')],
  ])('for an hour: known keys go on, asked for again at most every 30 s (%s)', async (_how, misbehave) => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.misbehave = misbehave

    for (let at = 0; at < HOUR; at += 10_000) {
      clock.advance(10_000)
      expect(await verifier.verify(await sign(first))).toMatchObject({ caller: { subject: 'user:alice' } })
    }

    expect(jwks.asked() - 1).toBeGreaterThan(1)
    // From the tenth minute to the sixtieth, both counted.
    expect(jwks.asked() - 1).toBeLessThanOrEqual(50 * 2 + 1)
  })

  test('for a day: known keys go on, and not for longer', async () => {
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

  test('and a flood of unknown keys comes: it is still asked once in 30 s', async () => {
    const { jwks, verifier, clock, sign } = await setup()
    await verifier.verify(await sign(first))
    jwks.misbehave = isDown
    clock.advance(30_000)

    for (let at = 0; at < 100; at += 1) {
      expect(await verifier.verify(await sign(second, {}, { kid: `unknown-${at}` }))).toBeUndefined()
    }

    expect(jwks.asked()).toBe(2)
  })

  test('from the start: requests with a token are answered 503, others as usual', async () => {
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

    // Not at once: otherwise every request would cause a fetch.
    jwks.misbehave = null
    expect((await ask(token)).statusCode).toBe(503)
    expect(jwks.asked()).toBe(1)
    clock.advance(1000)
    expect((await ask(token)).statusCode).toBe(200)
  })
})

describe('what is fetched is bounded', () => {
  async function failureOf({ verifier, sign }: VerifierWorld): Promise<unknown> {
    const failure: unknown = await verifier.verify(await sign(first)).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(JwtKeysUnavailableError)
    return (failure as JwtKeysUnavailableError).cause
  }

  test('to 1 MiB', async () => {
    const world = await setup()
    const keys = JSON.stringify({ keys: [first.publicJwk] })
    world.jwks.misbehave = (response) => void response.end(keys.padEnd(1024 * 1024 + 1))
    expect(await failureOf(world)).toMatchObject({ message: 'expected an answer of at most 1048576 bytes, got more' })

    world.jwks.misbehave = (response) => void response.end(keys.padEnd(1024 * 1024))
    world.clock.advance(1000)
    expect(await world.verifier.verify(await world.sign(first))).toBeDefined()
  })

  test('to five seconds', async () => {
    const world = await setup()
    world.jwks.misbehave = (response) => void response.write('{"keys":')
    const asked = world.jwks.nextAsked()
    const failure = failureOf(world)
    await asked

    world.clock.advance(5000)

    expect(await failure).toMatchObject({ message: 'expected an answer within 5000 ms, got none' })
  })

  test('to the one address: a redirect is not followed', async () => {
    const world = await setup()
    world.jwks.misbehave = (response) => void response.writeHead(302, { location: elsewhere.url }).end()

    expect(await failureOf(world)).toMatchObject({ message: 'expected an answer with status 200, got 302' })
    expect(elsewhere.asked()).toBe(0)
  })
})
