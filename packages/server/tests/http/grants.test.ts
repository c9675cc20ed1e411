import { afterAll, describe, expect, test } from 'vitest'

import { grantWarning } from '../../src/http/wire.ts'
import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

const NOW = '2026-03-02T06:00:00Z'
const world = await createTestApp({ clock: clockAt(NOW) })
const { admin } = world
afterAll(() => world[Symbol.asyncDispose]())

describe('the grant of a schedule', () => {
  test('a schedule without a named grant gets a grant of its own, with the one scope that it needs, which ends with the schedule', async () => {
    const { id, grantId, grantExpiresAt, grantWarning: warning } = await admin.schedules.create(DIGEST)

    const grant = await admin.grants.get(grantId)
    await admin.schedules.delete(id)

    expect([grantExpiresAt, warning]).toEqual([null, null])
    expect(grant).toMatchObject({ scheduleId: id, scopes: ['http:dispatch:127.0.0.1:9000'], warning: null })
    expect(await admin.grants.get(grantId)).toMatchObject({ warning: 'revoked' })
  })

  test('a schedule uses the grant that its creator names, and an edit to null gives it one of its own', async () => {
    const { id: grantId } = await admin.grants.create({ scopes: ['http:dispatch:*'] })
    const schedule = await admin.schedules.create({ ...DIGEST, grantId })

    const edited = await admin.schedules.edit(schedule.id, { grantId: null })

    expect(schedule.grantId).toBe(grantId)
    expect(edited.grantId).not.toBe(grantId)
    expect(await admin.grants.get(edited.grantId)).toMatchObject({ scheduleId: schedule.id })
  })

  test('a grant that ends within 7 days shows a warning in its schedules until it is renewed', async () => {
    const { id: grantId } = await admin.grants.create({
      scopes: ['http:dispatch:*'],
      expiresAt: '2026-03-09T06:00:00Z',
    })
    const { id, ...made } = await admin.schedules.create({ ...DIGEST, grantId })
    const listed = (await admin.schedules.list()).items.find((schedule) => schedule.id === id)

    const renewed = await admin.grants.renew(grantId, { expiresAt: '2027-01-01T00:00:00+01:00' })

    for (const shown of [made, listed]) {
      expect(shown).toMatchObject({ grantExpiresAt: '2026-03-09T06:00:00.000Z', grantWarning: 'expires_soon' })
    }
    expect(renewed).toMatchObject({ expiresAt: '2026-12-31T23:00:00.000Z', warning: null })
    expect(await admin.schedules.get(id)).toMatchObject({ grantWarning: null })
    expect((await admin.grants.renew(grantId, { expiresAt: null })).expiresAt).toBeNull()
  })

  test.each([
    [{ expiresAt: null, isRevoked: false }, null],
    [{ expiresAt: null, isRevoked: true }, 'revoked'],
    [{ expiresAt: 0, isRevoked: true }, 'revoked'],
    [{ expiresAt: 1000, isRevoked: false }, 'expired'],
    [{ expiresAt: 1001, isRevoked: false }, 'expires_soon'],
    [{ expiresAt: 1000 + 7 * 86_400_000, isRevoked: false }, 'expires_soon'],
    [{ expiresAt: 1001 + 7 * 86_400_000, isRevoked: false }, null],
  ] as const)('a grant with the end %j has at 1000 ms the warning %s', (end, warning) => {
    expect(grantWarning(end, 1000)).toBe(warning)
  })
})

describe('a grant', () => {
  test('a renewal does not restore a revoked grant', async () => {
    const { id } = await admin.grants.create({ scopes: ['http:dispatch:*'] })
    const revoked = await admin.grants.revoke(id)

    await expect(admin.grants.renew(id, { expiresAt: null })).rejects.toMatchObject({
      status: 409,
      code: 'state_conflict',
    })
    expect(await admin.grants.get(id)).toEqual(revoked)
  })

  test('a renewal until a time in the past is refused', async () => {
    const { id } = await admin.grants.create({ scopes: ['http:dispatch:*'] })

    await expect(admin.grants.renew(id, { expiresAt: NOW })).rejects.toMatchObject({
      status: 400,
      errors: [{ field: 'expiresAt' }],
    })
  })

  test('I9: a grant of another project is not found', async () => {
    const { key } = await admin.keys.create({ project: 'web', subject: 'user:a', role: 'admin' })
    const { id } = await admin.grants.create({ scopes: ['http:dispatch:*'] })
    const missing = { status: 404, code: 'grant_not_found' }

    for (const each of [id, UNKNOWN_ID, 'nonsense']) {
      await expect(world.client(key).grants.get(each)).rejects.toMatchObject(missing)
      await expect(world.client(key).grants.renew(each, { expiresAt: null })).rejects.toMatchObject(missing)
    }
  })
})
