import { expect, test } from 'vitest'

import { createTestApp } from './test-app.ts'

test('every change of a grant, secret, member, key or tenant is logged with its actor, its scope and its details', async () => {
  await using world = await createTestApp()
  const { admin, log } = world
  const place = { tenant: 'acme', project: 'web' }
  const { key, id: keyId } = await admin.keys.create({ ...place, subject: 'user:ada', role: 'admin' })
  const ada = world.client(key)
  const { id: grantId } = await ada.grants.create({ scopes: ['http:dispatch:*'], subject: 'user:bob' })
  await ada.grants.renew(grantId, { expiresAt: '2099-01-01T00:00:00Z' })
  await ada.grants.revoke(grantId)
  await ada.secrets.put('token', { value: 'canary-7400' })
  await ada.secrets.delete('token')
  await ada.members.put('user:bob', { role: 'member' })
  await ada.members.remove('user:bob')
  await admin.tenants.put('acme', { maxSchedulesPerProject: 9 })
  await admin.keys.revoke(keyId, place)
  await ada.schedules.list().catch(() => undefined)

  const within = { level: 'info', tenantId: 'acme', projectId: 'web' }
  const byAda = { ...within, actor: 'user:ada' }
  const byInstallation = { ...within, actor: 'service:installation' }
  expect(log.filter(({ event }) => event !== undefined)).toMatchObject([
    { ...byInstallation, event: 'key.created', msg: 'key created', keyId, subject: 'user:ada', role: 'admin' },
    { ...byAda, event: 'grant.created', grantId, subject: 'user:bob' },
    { ...byAda, event: 'grant.renewed', grantId, expiresAt: Date.parse('2099-01-01T00:00:00Z') },
    { ...byAda, event: 'grant.revoked', grantId },
    { ...byAda, event: 'secret.put', name: 'token', version: 1 },
    { ...byAda, event: 'secret.deleted', name: 'token' },
    { ...byAda, event: 'member.put', subject: 'user:bob', role: 'member' },
    { ...byAda, event: 'member.removed', subject: 'user:bob' },
    { ...byInstallation, event: 'tenant.put', projectId: null, maxSchedulesPerProject: 9, allowedHosts: null },
    { ...byInstallation, event: 'key.revoked', keyId },
  ])
  expect(JSON.stringify(log)).not.toContain('canary-7400')
  expect(JSON.stringify(log)).not.toContain(key)
})

test('a refused change is not logged', async () => {
  await using world = await createTestApp()

  await world.admin.grants.revoke('01890000-0000-7000-8000-000000000000').catch(() => undefined)
  await world.admin.secrets.put('a b', { value: 'kept' }).catch(() => undefined)

  expect(world.log.filter(({ event }) => event !== undefined)).toEqual([])
})
