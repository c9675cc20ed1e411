import type { TenantInput } from '@carillon/api'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { findTenantLimits, saveTenantLimits } from '../../src/access/store/tenants.ts'
import { Tenants } from '../../src/access/tenants.ts'
import { createDb, type Db, type Tx } from '../../src/db/database.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:00Z'
const ACTOR = 'user:root'
const NO_LIMITS = {
  maxSchedulesPerProject: null,
  maxSchedulesPerUser: null,
  minimumSeconds: null,
  requestsPerMinute: null,
  allowedHosts: null,
}
const LOWEST = {
  maxSchedulesPerProject: 1,
  maxSchedulesPerUser: 1,
  minimumSeconds: 1,
  requestsPerMinute: 1,
  allowedHosts: [],
}
const HIGHEST = {
  maxSchedulesPerProject: 1_000_000,
  maxSchedulesPerUser: 1_000_000,
  minimumSeconds: 86_400,
  requestsPerMinute: 1_000_000_000,
  allowedHosts: Array.from({ length: 200 }, (_, index) => `${index}`.padEnd(300, 'h')),
}

let database: TestDatabase
let db: Db
let clock: ManualClock
let tenants: Tenants

beforeAll(async () => {
  database = await createDatabase()
  db = createDb(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`delete from carillon.tenants`.execute(db)
  clock = new ManualClock(START)
  tenants = new Tenants({ db, clock })
})

async function countTenants(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.tenants`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

test('a tenant without limits of its own has no row and reads as null for each limit', async () => {
  expect(await tenants.get('acme')).toEqual({ tenantId: 'acme', ...NO_LIMITS, updatedBy: null, updatedAt: null })
  expect(await countTenants()).toBe(0)
})

test.each<[what: string, limits: TenantInput]>([
  ['lowest', LOWEST],
  ['highest', HIGHEST],
])('the %s limits are accepted and stored unchanged', async (_what, limits) => {
  const kept = await tenants.put(ACTOR, 'acme', limits)

  expect(kept).toEqual({ tenantId: 'acme', ...limits, updatedBy: ACTOR, updatedAt: Date.parse(START) })
  expect(await tenants.get('acme')).toEqual(kept)
  expect(await tenants.get('globex')).toMatchObject(NO_LIMITS)
})

test('a put replaces all limits of a tenant: one that is absent or null becomes that of the installation', async () => {
  await tenants.put(ACTOR, 'acme', HIGHEST)
  clock.advance(60_000)

  const kept = await tenants.put('user:other', 'acme', { minimumSeconds: 5, allowedHosts: null })

  const updated = { updatedBy: 'user:other', updatedAt: Date.parse(START) + 60_000 }
  expect(kept).toEqual({ tenantId: 'acme', ...NO_LIMITS, minimumSeconds: 5, ...updated })
  expect(await tenants.get('acme')).toEqual(kept)
})

test('the given function checks the syntax of hosts', async () => {
  const asked: (readonly string[])[] = []
  const checked = new Tenants({
    db,
    clock,
    checkHosts: (hosts) => {
      asked.push(hosts)
      return hosts.includes('bad') ? [{ path: 'allowedHosts.1', message: 'expected a host pattern, got "bad"' }] : []
    },
  })

  await expect(checked.put(ACTOR, 'acme', { allowedHosts: ['good', 'bad'] })).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path: 'allowedHosts.1', message: 'expected a host pattern, got "bad"' }],
  })
  expect(await countTenants()).toBe(0)
  await checked.put(ACTOR, 'acme', { allowedHosts: ['good'] })
  await checked.put(ACTOR, 'acme', {})
  expect(asked).toEqual([['good', 'bad'], ['good']])
})

test('concurrent puts for one tenant all succeed', async () => {
  const saved = await Promise.all(
    Array.from({ length: 20 }, (_, index) => tenants.put(ACTOR, 'acme', { minimumSeconds: index + 1 })),
  )

  expect(saved).toContainEqual(await tenants.get('acme'))
  expect(await countTenants()).toBe(1)
})

test.each([null, { tenantId: 'globex', projectId: 'default' }])(
  'I9: a transaction in the scope %j neither reads nor writes the limits of a tenant',
  async (scope) => {
    const kept = await tenants.put(ACTOR, 'acme', LOWEST)
    const within = <Result>(work: (tx: Tx) => Promise<Result>) => transactScoped(db, systemClock, scope, work)

    expect(await within((tx) => findTenantLimits(tx, { tenantId: 'acme' }))).toBeUndefined()
    for (const tenantId of ['acme', 'initech']) {
      const write = within((tx) => saveTenantLimits(tx, { ...HIGHEST, tenantId, actor: 'user:eve', now: null }))
      await expect(write).rejects.toMatchObject({ code: '42501' })
    }

    expect(await tenants.get('acme')).toEqual(kept)
    expect(await countTenants()).toBe(1)
  },
)

describe('an invalid input is rejected and writes nothing', () => {
  test.each<[input: unknown, path: string]>([
    [{ maxSchedulesPerProject: 0 }, 'maxSchedulesPerProject'],
    [{ maxSchedulesPerProject: 1_000_001 }, 'maxSchedulesPerProject'],
    [{ maxSchedulesPerUser: -1 }, 'maxSchedulesPerUser'],
    [{ maxSchedulesPerUser: 1.5 }, 'maxSchedulesPerUser'],
    [{ minimumSeconds: 0 }, 'minimumSeconds'],
    [{ minimumSeconds: 86_401 }, 'minimumSeconds'],
    [{ minimumSeconds: '60' }, 'minimumSeconds'],
    [{ requestsPerMinute: 1e300 }, 'requestsPerMinute'],
    [{ requestsPerMinute: 1_000_000_001 }, 'requestsPerMinute'],
    [{ requestsPerMinute: Number.NaN }, 'requestsPerMinute'],
    [{ allowedHosts: 'a' }, 'allowedHosts'],
    [{ allowedHosts: Array.from({ length: 201 }, () => 'a') }, 'allowedHosts'],
    [{ allowedHosts: ['a', ''] }, 'allowedHosts.1'],
    [{ allowedHosts: ['a'.repeat(301)] }, 'allowedHosts.0'],
    [{ allowedHosts: ['a\0'] }, 'allowedHosts.0'],
    [{ allowedHosts: [7] }, 'allowedHosts.0'],
    [{ tenantId: 'globex' }, 'tenantId'],
    [{ updatedAt: 0 }, 'updatedAt'],
    [[], ''],
    [null, ''],
  ])('%j', async (input, path) => {
    await expect(tenants.put(ACTOR, 'acme', input as TenantInput)).rejects.toMatchObject({
      code: 'invalid_input',
      problems: [{ path, message: expect.stringMatching(/^expected/) as string }],
    })
    expect(await countTenants()).toBe(0)
  })

  test.each(['_platform', '', 'a/b', 'a\0', 'a'.repeat(101), null])('the tenant %j', async (tenantId) => {
    const refusal = { code: 'invalid_input', problems: [{ path: 'tenant' }] }

    await expect(tenants.put(ACTOR, tenantId as string, {})).rejects.toMatchObject(refusal)
    await expect(tenants.get(tenantId as string)).rejects.toMatchObject(refusal)
    expect(await countTenants()).toBe(0)
  })
})
