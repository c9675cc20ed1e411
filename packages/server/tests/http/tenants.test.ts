import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp({ clock: clockAt('2026-03-02T06:00:00Z') })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

const NOTHING_SAID = {
  maxSchedulesPerProject: null,
  maxSchedulesPerUser: null,
  minimumSeconds: null,
  requestsPerMinute: null,
  allowedHosts: null,
  updatedBy: null,
  updatedAt: null,
}

let acmeKey: string

beforeAll(async () => {
  acmeKey = (await admin.keys.create({ tenant: 'acme', project: 'web', subject: 'user:a', role: 'admin' })).key
})

describe('the limits of a tenant', () => {
  test('are those of the installation until they are set, and each put replaces all of them', async () => {
    expect(await admin.tenants.get('umbrella')).toEqual({ tenant: 'umbrella', ...NOTHING_SAID })
    await admin.tenants.put('umbrella', { maxSchedulesPerUser: 3, minimumSeconds: 300 })

    const said = await admin.tenants.put('umbrella', { maxSchedulesPerProject: 7, allowedHosts: ['*.example.com'] })

    expect(said).toEqual({
      tenant: 'umbrella',
      ...NOTHING_SAID,
      maxSchedulesPerProject: 7,
      allowedHosts: ['*.example.com'],
      updatedBy: 'service:installation',
      updatedAt: '2026-03-02T06:00:00.000Z',
    })
    expect(await admin.tenants.get('umbrella')).toEqual(said)
  })

  test("are readable with the tenant's own keys, and only the installation sets them", async () => {
    const acme = world.client(acmeKey)
    await admin.tenants.put('acme', { maxSchedulesPerProject: 9 })

    expect(await acme.tenants.get('acme')).toMatchObject({ tenant: 'acme', maxSchedulesPerProject: 9 })
    for (const id of ['acme', 'umbrella', 'nobody']) {
      await expect(acme.tenants.put(id, {})).rejects.toMatchObject({ status: 403, code: 'admin_key_required' })
    }
  })

  test('I9: of another tenant get the same answer as those of a tenant that does not exist', async () => {
    await admin.tenants.put('umbrella', { maxSchedulesPerProject: 7 })
    const answers = await Promise.all(
      ['umbrella', 'nobodys1'].map((id) => request('GET', `/api/v1/tenants/${id}`, { key: acmeKey })),
    )

    const [other, missing] = answers.map(({ statusCode, body }) => [
      statusCode,
      body.replace(/umbrella|nobodys1/, 'x').replace(/"instance":"[^"]*"/, ''),
    ])
    expect(other).toEqual(missing)
    expect(answers[0]?.json()).toMatchObject({ status: 404, code: 'tenant_not_found' })
  })

  test.each([
    [{ maxSchedulesPerProject: 0 }, 'maxSchedulesPerProject'],
    [{ minimumSeconds: 0.5 }, 'minimumSeconds'],
    [{ allowedHosts: ['a.example.com', '*', 'https://b'] }, 'allowedHosts.2'],
    [{ allowedHosts: ['10.0.0.0/8'] }, 'allowedHosts.0'],
    [{ allowedHosts: [7] }, 'allowedHosts.0'],
    [{ quota: 7 }, 'quota'],
  ])('are refused with the field at fault: %j', async (body, field) => {
    const answer = await request('PUT', '/api/v1/tenants/umbrella', { body })

    expect(answer.json()).toMatchObject({ status: 400, errors: [{ field }] })
  })

  test('cannot be set for an invalid tenant name', async () => {
    await expect(admin.tenants.put('_platform', {})).rejects.toMatchObject({
      status: 400,
      errors: [{ field: 'path.id' }],
    })
  })
})

describe('applying the limits of a tenant', () => {
  test("a project may not have more schedules than its tenant's limit", async () => {
    const { key } = await admin.keys.create({ tenant: 'small', project: 'a', subject: 'user:a', role: 'admin' })
    await admin.tenants.put('small', { maxSchedulesPerProject: 1 })
    const small = world.client(key)
    const { id } = await small.schedules.create(DIGEST)

    await expect(small.schedules.create(DIGEST)).rejects.toMatchObject({ status: 409, code: 'quota_exceeded' })
    await small.schedules.delete(id)

    expect(await small.schedules.create(DIGEST)).toMatchObject({ state: 'active' })
  })

  test("a schedule may not call a host outside its tenant's list", async () => {
    const { key } = await admin.keys.create({ tenant: 'narrow', project: 'a', subject: 'user:a', role: 'admin' })
    await admin.tenants.put('narrow', { allowedHosts: ['localhost'] })

    await expect(world.client(key).schedules.create(DIGEST)).rejects.toMatchObject({
      status: 400,
      errors: [{ field: 'target.url' }],
    })
  })
})
