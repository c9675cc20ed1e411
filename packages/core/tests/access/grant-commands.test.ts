import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { Grants, type GrantInput } from '../../src/access/grants.ts'
import { CarillonError } from '../../src/kernel/errors.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { CALLER, HOUR, MINUTE, Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:30Z'
const NOW = Date.parse(START)
const SCOPES = ['test:dispatch:*']

let database: TestDatabase
let pipeline: Pipeline
let grants: Grants

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
afterEach(() => pipeline.workerDb.close())
beforeEach(async () => {
  pipeline = await Pipeline.at(START, database)
  grants = new Grants({ db: pipeline.db, clock: pipeline.clock })
})

async function countGrants(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.execution_grants`.execute(
    pipeline.db,
  )
  return rows[0]?.count ?? Number.NaN
}

test('a created grant equals its input and reads back unchanged; its subject is the caller by default', async () => {
  const plain = await grants.create(CALLER, { scopes: SCOPES })
  const full = await grants.create(CALLER, {
    subject: 'service:billing',
    scopes: ['http:dispatch:[::1]:8080', 'http:dispatch:*.example.com', 'graph:run:*'],
    billingAccountId: 'account 7',
    expiresAt: NOW + 1,
  })

  expect(plain).toEqual({
    id: expect.any(String) as string,
    tenantId: 'acme',
    projectId: 'web',
    subject: 'user:alice',
    billingAccountId: null,
    scheduleId: null,
    scopes: SCOPES,
    expiresAt: null,
    revokedAt: null,
    revokedBy: null,
    createdBy: 'user:alice',
    createdAt: NOW,
  })
  expect(full).toMatchObject({
    subject: 'service:billing',
    scopes: ['http:dispatch:[::1]:8080', 'http:dispatch:*.example.com', 'graph:run:*'],
    billingAccountId: 'account 7',
    expiresAt: NOW + 1,
    createdBy: 'user:alice',
  })
  expect(await grants.get(CALLER, full.id)).toEqual(full)
})

test('a revocation stops the schedules of a grant, and a second revocation changes nothing (I8)', async () => {
  const worker = pipeline.worker()
  const grant = await grants.create(CALLER, { scopes: SCOPES })
  const schedule = await pipeline.create({ grantId: grant.id })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  const revoked = await grants.revoke(CALLER, grant.id)
  expect(revoked).toEqual({ ...grant, revokedAt: NOW + MINUTE / 2, revokedBy: 'user:alice' })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 skipped grant_revoked'])
  expect(await grants.revoke({ ...CALLER, subject: 'user:mallory' }, grant.id)).toEqual(revoked)
})

test('an expiry must lie ahead by the clock of the database (I10)', async () => {
  const real = new Grants({ db: pipeline.db })
  const { rows } = await sql<{ now: Date }>`select now() as now`.execute(pipeline.db)
  const now = rows[0]?.now.getTime() ?? Number.NaN

  await expect(real.create(CALLER, { scopes: SCOPES, expiresAt: now - 1 })).rejects.toMatchObject({
    problems: [{ path: 'expiresAt' }],
  })
  expect(await real.create(CALLER, { scopes: SCOPES, expiresAt: now + HOUR })).toMatchObject({ expiresAt: now + HOUR })
})

test.each([
  { whose: 'another tenant', caller: { ...CALLER, tenantId: 'evil' } },
  { whose: 'another project', caller: { ...CALLER, projectId: 'mobile' } },
])('a grant of $whose is not found (I9)', async ({ caller }) => {
  const grant = await grants.create(CALLER, { scopes: SCOPES })

  await expect(grants.get(caller, grant.id)).rejects.toMatchObject({ code: 'grant_not_found' })
  await expect(grants.revoke(caller, grant.id)).rejects.toMatchObject({ code: 'grant_not_found' })
  expect(await grants.list(caller)).toEqual([])
  expect(await grants.get(CALLER, grant.id)).toEqual(grant)
})

test('grants are listed page by page, newest first', async () => {
  const project = { ...CALLER, projectId: 'listed' }
  const made: string[] = []
  for (let at = 0; at < 5; at += 1) {
    pipeline.clock.advance(1)
    made.unshift((await grants.create(project, { scopes: SCOPES })).id)
  }

  const first = await grants.list(project, { limit: 3 })
  const second = await grants.list(project, { limit: 3, before: String(first.at(-1)?.id) })

  expect([...first, ...second].map(({ id }) => id)).toEqual(made)
  await expect(grants.list(project, { limit: 201 })).rejects.toMatchObject({ problems: [{ path: 'limit' }] })
})

const deep: unknown[] = []
for (let at = deep, depth = 0; depth < 100_000; depth += 1) {
  const below: unknown[] = []
  at.push(below)
  at = below
}

describe('an invalid grant is rejected with the field at fault, and nothing is written', () => {
  test.each<[what: string, input: unknown, path: string]>([
    ['nothing', undefined, ''],
    ['null', null, ''],
    ['a string', 'http:dispatch:*', ''],
    ['a list', SCOPES, ''],
    ['an account nested 100,000 levels deep', { scopes: SCOPES, billingAccountId: deep }, ''],
    ['a proxy that throws', new Proxy({}, { ownKeys: fail, get: fail }), ''],
    ['an unknown field', { scopes: SCOPES, tenantId: 'evil' }, 'tenantId'],
    ['no scopes', {}, 'scopes'],
    ['an empty list of scopes', { scopes: [] }, 'scopes'],
    ['51 scopes', { scopes: Array.from({ length: 51 }, () => 'a:b:c') }, 'scopes'],
    ['a string instead of a list of scopes', { scopes: 'a:b:c' }, 'scopes'],
    ['a number in the list of scopes', { scopes: ['a:b:c', 7] }, 'scopes.1'],
    ['a scope with two parts', { scopes: ['http:dispatch'] }, 'scopes.0'],
    ['a scope without an object', { scopes: ['http:dispatch:'] }, 'scopes.0'],
    ['a star as the verb', { scopes: ['http:*:example.com'] }, 'scopes.0'],
    ['a star as the kind', { scopes: ['*:dispatch:example.com'] }, 'scopes.0'],
    ['a star inside a name', { scopes: ['http:dispatch:api*.example.com'] }, 'scopes.0'],
    ['a star in the middle of an object', { scopes: ['http:dispatch:api.*.com'] }, 'scopes.0'],
    ['a star as the port', { scopes: ['http:dispatch:localhost:*'] }, 'scopes.0'],
    ['a star after a star', { scopes: ['http:dispatch:*.*.com'] }, 'scopes.0'],
    ['a star before an empty name', { scopes: ['http:dispatch:*.'] }, 'scopes.0'],
    ['a scope with a space', { scopes: ['http:dispatch:a b'] }, 'scopes.0'],
    ['a scope with U+0000', { scopes: ['http:dispatch:a\0'] }, 'scopes.0'],
    ['a scope with half a character', { scopes: ['http:dispatch:\udfff'] }, 'scopes.0'],
    ['a long scope', { scopes: [`http:dispatch:${'a'.repeat(300)}`] }, 'scopes.0'],
    ['a subject without a type', { scopes: SCOPES, subject: 'alice' }, 'subject'],
    ['null as the subject', { scopes: SCOPES, subject: null }, 'subject'],
    ['an empty account', { scopes: SCOPES, billingAccountId: '' }, 'billingAccountId'],
    ['an account with U+0000', { scopes: SCOPES, billingAccountId: '\0' }, 'billingAccountId'],
    ['an account with half a character', { scopes: SCOPES, billingAccountId: '\ud800' }, 'billingAccountId'],
    ['a list as the account', { scopes: SCOPES, billingAccountId: ['a'] }, 'billingAccountId'],
    ['an expiry at this instant', { scopes: SCOPES, expiresAt: NOW }, 'expiresAt'],
    ['an expiry in the past', { scopes: SCOPES, expiresAt: 0 }, 'expiresAt'],
    ['an expiry before 1970', { scopes: SCOPES, expiresAt: -1 }, 'expiresAt'],
    ['an expiry beyond the last date', { scopes: SCOPES, expiresAt: 1e300 }, 'expiresAt'],
    ['an expiry of NaN', { scopes: SCOPES, expiresAt: Number.NaN }, 'expiresAt'],
    ['an expiry between two milliseconds', { scopes: SCOPES, expiresAt: NOW + 0.5 }, 'expiresAt'],
    ['a string as the expiry', { scopes: SCOPES, expiresAt: '2027-01-01T00:00:00Z' }, 'expiresAt'],
    ['a Date as the expiry', { scopes: SCOPES, expiresAt: new Date(NOW + HOUR) }, 'expiresAt'],
  ])('%s', async (_what, input, path) => {
    const before = await countGrants()
    const refusal = grants.create(CALLER, input as GrantInput)

    await expect(refusal).rejects.toBeInstanceOf(CarillonError)
    await expect(refusal).rejects.toMatchObject({
      code: 'invalid_input',
      problems: [{ path, message: expect.stringMatching(/^expected/) as string }],
    })
    expect(await countGrants()).toBe(before)
  })

  test.each(['', '\0', "' or true --", '01890000-0000-7000-8000-000000000000', 7, null, {}])(
    'an invalid id is not found: %j',
    async (id) => {
      await expect(grants.get(CALLER, id as string)).rejects.toMatchObject({ code: 'grant_not_found' })
      await expect(grants.revoke(CALLER, id as string)).rejects.toMatchObject({ code: 'grant_not_found' })
    },
  )
})

function fail(): never {
  throw new Error('boo')
}
