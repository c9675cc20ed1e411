import { afterAll, expect, test } from 'vitest'

import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { clockAt } from './fixed-clock.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp({ clock: clockAt('2026-03-02T06:00:00Z') })
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

test('a preview shows a cadence in words, its slots and its DST warnings, and creates nothing', async () => {
  const preview = await admin.cadence.preview({
    cadence: { kind: 'cron', expression: '30 2 * * *', timezone: 'Europe/Madrid' },
    from: '2026-03-27T12:00:00+01:00',
    count: 3,
  })

  expect(preview.description).toContain('02:30')
  expect(preview.slots).toEqual([
    { scheduledFor: '2026-03-28T01:30:00.000Z', local: '2026-03-28T02:30:00+01:00[Europe/Madrid]' },
    { scheduledFor: '2026-03-29T01:00:00.000Z', local: '2026-03-29T03:00:00+02:00[Europe/Madrid]' },
    { scheduledFor: '2026-03-30T00:30:00.000Z', local: '2026-03-30T02:30:00+02:00[Europe/Madrid]' },
  ])
  expect(preview.warnings[0]).toMatchObject({ code: 'dst_gap', at: '2026-03-29T01:00:00.000Z', effect: 'shifted' })
  expect((await admin.schedules.list()).items).toEqual([])
})

test('a preview begins now and shows five slots by default', async () => {
  const { slots } = await admin.cadence.preview({ cadence: DIGEST.cadence })

  expect(slots).toHaveLength(5)
  expect(slots[0]?.scheduledFor).toBe('2026-03-02T08:00:00.000Z')
})

test('a grant is created, listed and revoked, and a second revocation does not change the first', async () => {
  const grant = await admin.grants.create({
    subject: 'user:alice',
    scopes: ['http:dispatch:digest.internal'],
    billingAccountId: 'acc-1',
    expiresAt: '2027-01-01T00:00:00+01:00',
  })
  const revoked = await admin.grants.revoke(grant.id)

  expect(grant).toMatchObject({
    subject: 'user:alice',
    billingAccountId: 'acc-1',
    scheduleId: null,
    expiresAt: '2026-12-31T23:00:00.000Z',
    warning: null,
    revokedAt: null,
    createdBy: 'service:installation',
    createdAt: '2026-03-02T06:00:00.000Z',
  })
  expect(revoked).toEqual({
    ...grant,
    warning: 'revoked',
    revokedAt: '2026-03-02T06:00:00.000Z',
    revokedBy: 'service:installation',
  })
  expect(await admin.grants.revoke(grant.id)).toEqual(revoked)
  expect((await admin.grants.list()).items).toEqual([revoked])
  await expect(admin.grants.revoke(UNKNOWN_ID)).rejects.toMatchObject({ status: 404, code: 'grant_not_found' })
})

test('a grant belongs to the caller and never ends by default', async () => {
  const grant = await admin.grants.create({ scopes: ['http:dispatch:*'], expiresAt: null, billingAccountId: null })

  expect(grant).toMatchObject({ subject: 'service:installation', billingAccountId: null, expiresAt: null })
})

test('a key is shown once, and the list does not contain it', async () => {
  const answer = await request('POST', '/api/v1/keys', {
    body: { project: 'default', subject: 'user:bob', role: 'admin' },
  })

  const { key, ...apiKey } = answer.json<{ key: string; id: string; prefix: string }>()
  expect(answer.statusCode).toBe(201)
  expect(key.startsWith(apiKey.prefix)).toBe(true)
  expect((await admin.keys.list()).items).toEqual([apiKey])
  const revoked = await admin.keys.revoke(apiKey.id)
  expect(revoked).toMatchObject({ id: apiKey.id, revokedBy: 'service:installation' })
  expect(await admin.keys.revoke(apiKey.id)).toEqual(revoked)
})

test("one call deletes all schedules of the caller's project, and none of another project", async () => {
  await admin.schedules.create(DIGEST)
  await admin.schedules.create(DIGEST)
  const { key } = await admin.keys.create({ project: 'web', subject: 'user:bob', role: 'admin' })
  const web = world.client(key)
  await web.schedules.create(DIGEST)

  const refused = web.projects.deleteSchedules('default')
  await expect(refused).rejects.toMatchObject({ status: 404, code: 'project_not_found' })
  expect(await admin.projects.deleteSchedules('default')).toEqual({ deleted: 2 })

  expect((await admin.schedules.list()).items).toEqual([])
  expect((await web.schedules.list()).items).toHaveLength(1)
})

test('a request for an audit gets 202, and the report is empty until the first audit has ended', async () => {
  const report = await admin.audit.get()
  const answer = await request('POST', '/api/v1/audit')

  expect(report).toEqual({ latest: null, auditedUntil: null, findings: [] })
  expect(answer.statusCode).toBe(202)
  expect(answer.json()).toEqual({ requestedAt: '2026-03-02T06:00:00.000Z' })
})

test('only the installation may request an audit, and the refusal of other callers states a remedy', async () => {
  for (const role of ['member', 'admin'] as const) {
    const { key } = await admin.keys.create({ project: 'default', subject: 'user:asks', role })

    await expect(world.client(key).audit.request()).rejects.toMatchObject({
      status: 403,
      code: 'admin_key_required',
      message: expect.stringMatching(/^expected the admin key, got another key: /) as string,
    })
  }
})

test("I9: the audit report has the findings of the caller's project only, and its totals are for the installation only", async () => {
  const { id } = await admin.schedules.create(DIGEST)
  const place = { tenant: 'acme', project: 'web' }
  const { key } = await admin.keys.create({ ...place, subject: 'user:reads', role: 'admin' })
  await world.database.pool.query(
    `insert into carillon.audits (id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count,
       unreadable_count, truncated_count, finding_count, repaired_count)
     values ($1, true, '2026-03-01', '2026-03-02', '2026-03-02', '2026-03-02', 1, 2, 0, 0, 1, 1)`,
    [UNKNOWN_ID],
  )
  await world.database.pool.query(
    `insert into carillon.audit_findings (audit_id, ordinal, kind, tenant_id, project_id, schedule_id, scheduled_for, detail,
       is_repaired, found_at)
     values ($1, 1, 'slot_lost', 'default', 'default', $2, '2026-03-01T08:00:00Z', 'had no line', true, '2026-03-01'),
       ($1, 2, 'slot_lost', 'acme', 'web', $2, '2026-03-01T08:00:00Z', 'of others', true, '2026-03-01'),
       ($1, 3, 'slot_lost', null, null, null, null, 'of nobody', true, '2026-03-01')`,
    [UNKNOWN_ID, id],
  )

  const { latest, findings } = await admin.audit.get()
  const others = await world.client(key).audit.get()

  const when = {
    id: UNKNOWN_ID,
    from: '2026-03-01T00:00:00.000Z',
    to: '2026-03-02T00:00:00.000Z',
    startedAt: '2026-03-02T00:00:00.000Z',
    completedAt: '2026-03-02T00:00:00.000Z',
    isWhole: true,
  }
  expect(latest).toEqual({ ...when, schedules: 1, slots: 2, unreadable: 0, truncated: 0, findings: 1, repaired: 1 })
  const untold = { schedules: null, slots: null, unreadable: null, truncated: null, findings: null, repaired: null }
  expect(others.latest).toEqual({ ...when, ...untold })
  expect(others.findings.map(({ detail }) => detail)).toEqual(['of others'])
  const found = { foundAt: '2026-03-01T00:00:00.000Z', seenAt: '2026-03-02T00:00:00.000Z' }
  expect(findings).toEqual([
    {
      kind: 'slot_lost',
      scheduleId: id,
      scheduledFor: '2026-03-01T08:00:00.000Z',
      detail: 'had no line',
      isRepaired: true,
      ...found,
    },
    { kind: 'slot_lost', scheduleId: null, scheduledFor: null, detail: 'of nobody', isRepaired: true, ...found },
  ])
})
