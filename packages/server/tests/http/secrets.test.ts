import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp()
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

const VALUE = 'canary-of-a-secret-7400'

describe('a secret', () => {
  test('is stored, listed and deleted, and its value is never returned or logged', async () => {
    const answers = [
      await request('PUT', '/api/v1/secrets/api-token', { body: { value: VALUE } }),
      await request('PUT', '/api/v1/secrets/api-token', { body: { value: `${VALUE}-2` } }),
      await request('GET', '/api/v1/secrets'),
      await request('PUT', '/api/v1/secrets/api-token', { body: { value: [VALUE] } }),
      await request('PUT', '/api/v1/secrets/api-token', { body: { value: `${VALUE}\u0000` } }),
      await request('PUT', `/api/v1/secrets/${encodeURIComponent(`${VALUE} `)}`, { body: { value: VALUE } }),
      await request('PUT', '/api/v1/secrets/api-token', { body: `{"value": "${VALUE}` }),
      await request('PUT', '/api/v1/secrets/api-token', { body: JSON.stringify(VALUE) }),
      await request('GET', '/api/v1/secrets/api-token'),
      await request('DELETE', '/api/v1/secrets/api-token'),
      await request('DELETE', '/api/v1/secrets/api-token'),
    ]

    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 400, 400, 400, 400, 400, 405, 204, 404])
    expect(answers[1]?.json()).toMatchObject({ name: 'api-token', version: 2, updatedBy: 'service:installation' })
    expect(answers[2]?.json<{ items: unknown[] }>().items).toEqual([answers[1]?.json()])
    for (const { body, headers } of answers) expect(body + JSON.stringify(headers)).not.toContain(VALUE)
    expect(JSON.stringify(world.log)).not.toContain(VALUE)
  })

  test('must exist when a schedule that refers to it is created', async () => {
    const target = { ...DIGEST.target, auth: { kind: 'bearer' as const, secretRef: 'later' } }
    const refused = admin.schedules.create({ ...DIGEST, target })
    await expect(refused).rejects.toMatchObject({ status: 400, errors: [{ field: 'target.auth.secretRef' }] })

    await admin.secrets.put('later', { value: VALUE })

    expect((await admin.schedules.create({ ...DIGEST, target })).target).toMatchObject({ auth: target.auth })
  })

  test('is listed for members, and stored and deleted by admins only', async () => {
    const { key } = await admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    const member = world.client(key)
    const { name } = await admin.secrets.put('told', { value: VALUE })

    expect((await member.secrets.list()).items.map((secret) => secret.name)).toContain(name)
    await expect(member.secrets.put(name, { value: 'other' })).rejects.toMatchObject({ status: 403 })
    await expect(member.secrets.delete(name)).rejects.toMatchObject({ status: 403 })
  })

  test('cannot be stored without an encryption key: the request gets 503', async () => {
    await using other = await createTestApp({ secretsKeys: null })

    await expect(other.admin.secrets.put('a', { value: VALUE })).rejects.toMatchObject({
      status: 503,
      code: 'secrets_unavailable',
      message: expect.stringContaining('CARILLON_SECRETS_KEY') as unknown,
    })
    expect((await other.admin.secrets.list()).items).toEqual([])
  })
})
