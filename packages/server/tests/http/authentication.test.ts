import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { SESSION_COOKIE } from '../../src/auth/authenticate.ts'
import { DIGEST } from './example-schedules.ts'
import { ADMIN_KEY, createTestApp } from './test-app.ts'

const world = await createTestApp({ signIn: { accepts: (cookie) => cookie === 'signed in' } })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

const LIST = '/api/v1/schedules'
let adminKey: string
let memberKey: string
let memberKeyId: string

beforeAll(async () => {
  const place = { tenant: 'acme', project: 'web' }
  adminKey = (await admin.keys.create({ ...place, subject: 'user:alice', role: 'admin' })).key
  const member = await admin.keys.create({ ...place, subject: 'user:bob', role: 'member' })
  memberKey = member.key
  memberKeyId = member.id
})

describe('credentials', () => {
  test('the admin key and created keys are accepted', async () => {
    for (const key of [ADMIN_KEY, adminKey, memberKey]) {
      expect((await request('GET', LIST, { key })).statusCode).toBe(200)
    }
  })

  test.each([
    ['no key', {}],
    ['an empty key', { authorization: 'Bearer ' }],
    ['an unknown key', { authorization: 'Bearer somebody-elses-key-of-24' }],
    ['the admin key without its end', { authorization: `Bearer ${ADMIN_KEY.slice(0, -1)}` }],
    ['the admin key and one more character', { authorization: `Bearer ${ADMIN_KEY}x` }],
    ['another scheme', { authorization: `Token ${ADMIN_KEY}` }],
    ['a key without a scheme', { authorization: ADMIN_KEY }],
    ['a password', { authorization: `Basic ${Buffer.from(`x:${ADMIN_KEY}`).toString('base64')}` }],
    ['bytes that are not ASCII', { authorization: 'Bearer \u00ff\u00fe' }],
    ['a forged cookie', { cookie: `${SESSION_COOKIE}=forged` }],
    ['a cookie beside a wrong key', { authorization: 'Bearer wrong', cookie: `${SESSION_COOKIE}=signed%20in` }],
  ])('a request with %s gets 401, and the problem states how to send a key', async (_what, headers) => {
    const answer = await request('GET', LIST, { key: null, headers })

    expect(answer.statusCode).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Bearer')
    expect(answer.json()).toMatchObject({
      code: 'unauthenticated',
      detail: expect.stringContaining('Bearer <key>') as unknown,
    })
  })

  test('a revoked key is refused from the next request on', async () => {
    const { key, id } = await admin.keys.create({ project: 'default', subject: 'user:carol', role: 'member' })
    expect((await request('GET', LIST, { key })).statusCode).toBe(200)

    await admin.keys.revoke(id)

    expect((await request('GET', LIST, { key })).statusCode).toBe(401)
  })

  test('a caller with an unknown key does not learn whether its body is valid', async () => {
    const answer = await request('POST', LIST, { key: 'nobody', body: '{"name": ' })

    expect(answer.statusCode).toBe(401)
  })
})

describe('roles', () => {
  test('a member may read, but may not change anything', async () => {
    const member = world.client(memberKey)
    const { id } = await world.client(adminKey).schedules.create(DIGEST)
    const forbidden = { status: 403, code: 'forbidden' }

    expect((await member.schedules.get(id)).id).toBe(id)
    expect((await member.cadence.preview({ cadence: DIGEST.cadence })).slots).toHaveLength(5)
    await expect(member.schedules.create(DIGEST)).rejects.toMatchObject(forbidden)
    await expect(member.schedules.delete(id)).rejects.toMatchObject(forbidden)
    await expect(member.schedules.run(id)).rejects.toMatchObject(forbidden)
    await expect(member.keys.list()).rejects.toMatchObject(forbidden)
    await expect(member.audit.request()).rejects.toMatchObject({ status: 403, code: 'admin_key_required' })
  })

  test('I9: an admin creates keys for its own project only, and the installation for any project', async () => {
    const acme = world.client(adminKey)
    const key = { subject: 'user:dave', role: 'member' } as const

    expect(await acme.keys.create({ ...key, project: 'web' })).toMatchObject({ tenant: 'acme', project: 'web' })
    await expect(acme.keys.create({ ...key, project: 'other' })).rejects.toMatchObject({
      status: 403,
      code: 'admin_key_required',
    })
    await expect(acme.keys.create({ ...key, tenant: 'evil', project: 'web' })).rejects.toMatchObject({ status: 403 })
  })

  test('I9: an admin sees and revokes only the keys of its own project', async () => {
    const { id } = await admin.keys.create({ project: 'default', subject: 'user:erin', role: 'member' })
    const acme = world.client(adminKey)

    const listed = await acme.keys.list()

    expect(listed.items.every(({ tenant }) => tenant === 'acme')).toBe(true)
    expect(listed.items.map((key) => key.id)).toContain(memberKeyId)
    await expect(acme.keys.revoke(id)).rejects.toMatchObject({ status: 404, code: 'key_not_found' })
    const elsewhere = { tenant: 'default', project: 'default' }
    await expect(acme.keys.list(elsewhere)).rejects.toMatchObject({ status: 403, code: 'admin_key_required' })
    await expect(acme.keys.revoke(id, elsewhere)).rejects.toMatchObject({ status: 403, code: 'admin_key_required' })
  })

  test('the installation lists and revokes the keys of any project that it names', async () => {
    const place = { tenant: 'umbrella', project: 'lab' }
    const { id, key } = await admin.keys.create({ ...place, subject: 'user:frank', role: 'admin' })

    const listed = await admin.keys.list(place)
    const revoked = await admin.keys.revoke(id, place)

    expect(listed.items.map((item) => item.id)).toEqual([id])
    expect(revoked).toMatchObject({ id, ...place, revokedBy: 'service:installation' })
    await expect(world.client(key).schedules.list()).rejects.toMatchObject({ status: 401 })
  })
})

describe('a signed-in browser', () => {
  const cookie = `${SESSION_COOKIE}=signed%20in`
  const host = 'carillon.test:7400'

  test('reads with the permissions of the installation', async () => {
    expect((await request('GET', LIST, { key: null, headers: { cookie } })).statusCode).toBe(200)
  })

  test.each([
    ['of the same origin', { origin: `http://${host}` }],
    ['with Sec-Fetch-Site: same-origin', { 'sec-fetch-site': 'same-origin' }],
    ['with both headers', { origin: `https://${host}`, 'sec-fetch-site': 'same-origin' }],
  ])('may change something by a request %s', async (_what, headers) => {
    const answer = await request('POST', LIST, { key: null, headers: { host, cookie, ...headers }, body: DIGEST })

    expect(answer.statusCode).toBe(201)
    expect(answer.json()).toMatchObject({ createdBy: 'service:installation' })
  })

  test.each([
    ['another origin', { origin: 'http://evil.test' }],
    ['another port', { origin: 'http://carillon.test:8000' }],
    ['a page without an origin', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another host of the same site', { origin: `http://${host}`, 'sec-fetch-site': 'same-site' }],
    ['an unknown page', {}],
  ])('may not change anything by a request from %s', async (_what, headers) => {
    const answer = await request('POST', LIST, { key: null, headers: { host, cookie, ...headers }, body: DIGEST })

    expect(answer.json()).toMatchObject({ status: 403, code: 'forbidden' })
  })
})
