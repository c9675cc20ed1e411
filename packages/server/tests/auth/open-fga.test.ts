import type { ServerResponse } from 'node:http'

import type { AccessRequest, AuthorizationPort } from '@carillon/core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'

import { AuthorizationUnavailableError, createOpenFga, type OpenFgaOptions } from '../../src/auth/open-fga.ts'
import { ManualClock } from '../http/manual-clock.ts'
import { MODEL_ID, OpenFgaStandIn, STORE_ID } from './open-fga-stand-in.ts'

const TOKEN = 'the-token-of-the-store'
const fga = await OpenFgaStandIn.start(TOKEN)
afterAll(() => fga[Symbol.asyncDispose]())

const ALICE: AccessRequest = { tenantId: 'acme', projectId: 'web', subject: 'user:alice', role: 'admin' }
const ALICE_ADMIN = { user: 'user:alice', relation: 'admin', object: 'project:acme/web' } as const

function create(options: Partial<OpenFgaOptions> = {}): AuthorizationPort {
  return createOpenFga({ url: fga.url, storeId: STORE_ID, token: TOKEN, ...options })
}

beforeEach(() => {
  fga.misbehave = null
  fga.write(ALICE_ADMIN)
  fga.write({ user: 'user:bob', relation: 'member', object: 'project:acme/web' })
  fga.write({ user: 'service:billing', relation: 'admin', object: 'project:acme/web' })
})

describe('decisions of OpenFGA', () => {
  test.each([
    ['user:alice', 'member', true],
    ['user:alice', 'admin', true],
    ['user:bob', 'member', true],
    ['user:bob', 'admin', false],
    ['service:billing', 'admin', true],
    ['user:mallory', 'member', false],
    ['user:mallory', 'admin', false],
  ] as const)('OpenFGA decides whether %s may act as %s', async (subject, role, isAllowed) => {
    expect(await create().isAllowed({ ...ALICE, subject, role })).toBe(isAllowed)
  })

  test('I9: a permission holds in one project only, and no two projects have the same name in OpenFGA', async () => {
    const port = create()

    expect(await port.isAllowed({ ...ALICE, projectId: 'other' })).toBe(false)
    expect(await port.isAllowed({ ...ALICE, tenantId: 'evil' })).toBe(false)
    expect(await port.isAllowed({ ...ALICE, tenantId: 'acme/web', projectId: '' })).toBe(false)
    expect(await port.isAllowed({ ...ALICE, tenantId: 'acme', projectId: 'web#admin' })).toBe(false)
  })

  test('the settings choose the relations and the names of the objects', async () => {
    const port = create({
      relations: { member: 'member', admin: 'admin' },
      objectOf: ({ projectId }) => `project:acme/${projectId}`,
    })

    expect(await port.isAllowed({ ...ALICE, tenantId: 'any' })).toBe(true)
    expect(await port.isAllowed({ ...ALICE, role: 'member' })).toBe(false)
  })

  test('a subject that is named like a wildcard or a group gets no permission from it', async () => {
    fga.write({ user: 'user:*', relation: 'admin', object: 'project:acme/web' })
    fga.write({ user: 'user:team#member', relation: 'admin', object: 'project:acme/web' })
    const port = create()

    for (const subject of ['user:*', 'user:team#member', 'user:a:b', 'user:%2A']) {
      expect(await port.isAllowed({ ...ALICE, subject })).toBe(false)
    }
    expect(fga.received.slice(-4).map(({ body }) => body)).toMatchObject(
      ['user:%2A', 'user:team%23member', 'user:a%3Ab', 'user:%252A'].map((user) => ({ tuple_key: { user } })),
    )
  })
})

describe('the requests to OpenFGA', () => {
  test('a check has the body that the API of OpenFGA defines, and carries the token', async () => {
    await create().isAllowed(ALICE)

    const { headers, body } = fga.received.at(-1) ?? {}
    expect(body).toEqual({
      tuple_key: { user: 'user:alice', relation: 'can_write', object: 'project:acme/web' },
      consistency: 'HIGHER_CONSISTENCY',
    })
    expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' })
  })

  test('a check names the model if one is configured, and carries no token if none is configured', async () => {
    await using open = await OpenFgaStandIn.start()
    open.write(ALICE_ADMIN)

    expect(await create({ url: `${open.url}/`, modelId: MODEL_ID, token: null }).isAllowed(ALICE)).toBe(true)

    expect(open.received[0]?.body).toMatchObject({ authorization_model_id: MODEL_ID })
    expect(open.received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('checks reuse their connections', async () => {
    await using open = await OpenFgaStandIn.start()
    const port = create({ url: open.url })

    for (let at = 0; at < 10; at += 1) await port.isAllowed(ALICE)

    // A second connection is opened if the first one is still busy when the next check begins.
    expect(open.connections).toBeLessThanOrEqual(2)
  })
})

describe('cached answers of OpenFGA', () => {
  test('a removed member is refused at once, although OpenFGA caches answers for 20 s', async () => {
    const port = create()
    expect(await port.isAllowed(ALICE)).toBe(true)

    fga.delete(ALICE_ADMIN)

    expect(await port.isAllowed(ALICE)).toBe(false)
    // The stand-in caches answers: without HIGHER_CONSISTENCY it answers as before the removal.
    expect(await askWithoutConsistency('MINIMIZE_LATENCY')).toEqual({ allowed: true, resolution: '' })
    expect(await askWithoutConsistency(undefined)).toEqual({ allowed: true, resolution: '' })
    fga.advance(20_000)
    expect(await askWithoutConsistency(undefined)).toEqual({ allowed: false, resolution: '' })
  })

  async function askWithoutConsistency(consistency: string | undefined): Promise<unknown> {
    const response = await fetch(`${fga.url}/stores/${STORE_ID}/check`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tuple_key: { ...ALICE_ADMIN, relation: 'can_write' }, consistency }),
    })
    return response.json()
  }
})

describe('a failed check neither allows nor denies the request', () => {
  async function failureOf(port: AuthorizationPort, request: AccessRequest = ALICE): Promise<unknown> {
    const failure: unknown = await port.isAllowed(request).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(AuthorizationUnavailableError)
    expect(JSON.stringify([failure, String(failure)])).not.toContain(TOKEN)
    return (failure as AuthorizationUnavailableError).cause
  }

  test.each([400, 401, 403, 404, 409, 422, 429, 500, 502, 503])(
    'a check fails if OpenFGA answers %i, even with "allowed"',
    async (status) => {
      fga.misbehave = (response) => void response.writeHead(status).end('{"allowed":true}')

      expect(await failureOf(create())).toMatchObject({
        message: `expected an answer with status 200, got ${status}`,
      })
    },
  )

  test.each([201, 202, 206])('a check fails if OpenFGA answers %i', async (status) => {
    fga.misbehave = (response) => void response.writeHead(status).end('{"allowed":true}')

    await failureOf(create())
  })

  test.each([
    '',
    'true',
    'null',
    '[]',
    '{}',
    '{"allowed":"true"}',
    '{"allowed":1}',
    '{"allowed":null}',
    '{"Allowed":true}',
    '{"__proto__":{"allowed":true}}',
    '[{"allowed":true}]',
    '{"allowed":true',
    '{"allowed":true}{}',
    '<html>allowed: true</html>',
  ])('a check fails if OpenFGA answers %s', async (text) => {
    fga.misbehave = (response) => void response.end(text)

    await failureOf(create())
  })

  test.each([301, 302, 307, 308])(
    'a check fails if OpenFGA redirects with %i, and the redirect is not followed',
    async (status) => {
      await using elsewhere = await OpenFgaStandIn.start()
      elsewhere.write(ALICE_ADMIN)
      const location = `${elsewhere.url}/stores/${STORE_ID}/check`
      fga.misbehave = (response) => void response.writeHead(status, { location }).end()

      await failureOf(create())

      expect(elsewhere.received).toEqual([])
    },
  )

  test('a check fails if the answer is larger than 64 KiB', async () => {
    const answer = JSON.stringify({ allowed: true })
    fga.misbehave = (response) => void response.end(answer.padEnd(64 * 1024))
    expect(await create().isAllowed(ALICE)).toBe(true)

    fga.misbehave = (response) => void response.end(answer.padEnd(64 * 1024 + 1))

    expect(await failureOf(create())).toMatchObject({ message: 'expected an answer of at most 65536 bytes, got more' })
  })

  test('a check fails if the answer never ends', async () => {
    const pour = (response: ServerResponse): void => {
      while (response.write(' '.repeat(16 * 1024)));
      response.once('drain', () => pour(response))
    }
    fga.misbehave = pour

    await failureOf(create())
  })

  test.each([
    ['begins no answer', () => {}],
    ['does not end its answer', (response: ServerResponse) => void response.write('{"allowed":true}')],
  ])('a check fails if OpenFGA %s within 2 s', async (_what, misbehave) => {
    fga.misbehave = misbehave
    const clock = new ManualClock()
    const asked = fga.nextAsked()
    const failure = failureOf(create({ clock }))
    await asked

    clock.advance(1999)
    expect(clock.waiting).toBe(1)
    clock.advance(1)

    expect(await failure).toMatchObject({ message: 'expected an answer within 2000 ms, got none' })
  })

  test('a check fails if the connection breaks', async () => {
    fga.misbehave = (response) => void response.destroy()

    await failureOf(create())
  })

  test('a check fails if the answer breaks off', async () => {
    fga.misbehave = (response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{"allowed":true}', () => response.destroy())
    }

    await failureOf(create())
  })

  test('a check fails if the port is closed', async () => {
    const gone = await OpenFgaStandIn.start()
    const { url } = gone
    await gone[Symbol.asyncDispose]()

    await failureOf(create({ url }))
  })

  test.each([
    ['the token is wrong', { token: 'another' }],
    ['the token is missing', { token: null }],
    ['there is no such store', { storeId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
    ['there is no such model', { modelId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
    ['the model has no such relation', { relations: { member: 'reads', admin: 'writes' } }],
    ['the model has no such type', { objectOf: () => 'workspace:acme' }],
  ])('a check fails if %s', async (_what, options) => {
    await failureOf(create(options))
  })

  test('a check fails if the model has no type for the subject, or the subject cannot be sent', async () => {
    const port = create()

    await failureOf(port, { ...ALICE, subject: 'agent:seven' })
    await failureOf(port, { ...ALICE, subject: `user:${'#'.repeat(200)}` })
    await failureOf(port, { ...ALICE, tenantId: '\ud800' })
  })
})
