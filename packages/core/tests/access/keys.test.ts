import { createHash, randomInt } from 'node:crypto'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { newKeyText } from '../../src/access/key-text.ts'
import { Keys } from '../../src/access/keys.ts'
import { createDb, type Db } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { CarillonError } from '../../src/kernel/errors.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { CALLER } from '../pipeline.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:00Z'
const INPUT = { tenantId: 'acme', projectId: 'web', subject: 'user:bob', role: 'member' } as const

let database: TestDatabase
let db: Db
let clock: ManualClock
let keys: Keys

beforeAll(async () => {
  database = await createDatabase()
  db = createDb(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`delete from carillon.api_keys`.execute(db)
  clock = new ManualClock(START)
  keys = new Keys({ db, clock })
})

async function countKeys(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.api_keys`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

test('the secret of a key is returned once, and only its hash is stored', async () => {
  const { apiKey, secret } = await keys.create(CALLER, INPUT)

  expect(apiKey).toEqual({
    ...INPUT,
    id: expect.any(String) as string,
    prefix: secret.slice(0, 12),
    createdBy: 'user:alice',
    createdAt: Date.parse(START),
    revokedBy: null,
    revokedAt: null,
  })
  const { rows } = await sql<{ row: string; hash: Buffer }>`
    select to_json(keys)::text as row, hash from carillon.api_keys as keys`.execute(db)
  expect(rows[0]?.row).not.toContain(secret.slice(12))
  expect(rows[0]?.hash).toEqual(createHash('sha256').update(secret).digest())
})

test('a key is found by its secret alone, and a key that was never created is not found', async () => {
  const { apiKey, secret } = await keys.create(CALLER, { ...INPUT, tenantId: 'globex', role: 'admin' })

  expect(await keys.find(secret)).toEqual(apiKey)
  expect(await keys.find(newKeyText(randomInt))).toBeUndefined()
})

test('a key with a wrong checksum is rejected without a query', async () => {
  const pool = createPool({ connectionString: 'postgres://nobody@127.0.0.1:1/nowhere' })
  const offline = new Keys({ db: createDb(pool) })
  const key = newKeyText(randomInt)

  for (const junk of ['', 'x', '\0', `${key}0`, `car_${'0'.repeat(38)}`, key.replace(/.$/, '-'), null, 7, {}]) {
    expect(await offline.find(junk as string)).toBeUndefined()
  }
  await expect(offline.find(key)).rejects.toThrow('ECONNREFUSED')
  await pool.end()
})

test('a revoked key is not found, and a second revocation changes nothing', async () => {
  const { apiKey, secret } = await keys.create(CALLER, INPUT)
  clock.advance(1000)

  const revoked = await keys.revoke(CALLER, apiKey.id)
  expect(revoked).toEqual({ ...apiKey, revokedBy: 'user:alice', revokedAt: Date.parse(START) + 1000 })
  expect(await keys.find(secret)).toBeUndefined()
  clock.advance(1000)

  expect(await keys.revoke({ ...CALLER, subject: 'user:mallory' }, apiKey.id)).toEqual(revoked)
})

test.each([
  { whose: 'another tenant', caller: { ...CALLER, tenantId: 'evil' } },
  { whose: 'another project', caller: { ...CALLER, projectId: 'mobile' } },
])('a key of $whose is not found, not listed and not revoked (I9)', async ({ caller }) => {
  const { apiKey, secret } = await keys.create(CALLER, INPUT)

  await expect(keys.revoke(caller, apiKey.id)).rejects.toMatchObject({ code: 'key_not_found' })
  expect(await keys.list(caller)).toEqual([])
  expect(await keys.find(secret)).toEqual(apiKey)
})

test('keys are listed page by page, newest first, revoked keys included', async () => {
  const made: string[] = []
  for (let at = 0; at < 5; at += 1) {
    clock.advance(1)
    made.unshift((await keys.create(CALLER, INPUT)).apiKey.id)
  }
  await keys.revoke(CALLER, String(made[1]))

  const first = await keys.list(CALLER, { limit: 2 })
  const second = await keys.list(CALLER, { before: String(first.at(-1)?.id), limit: 2 })
  const third = await keys.list(CALLER, { before: String(second.at(-1)?.id), limit: 2 })

  expect([...first, ...second, ...third].map(({ id }) => id)).toEqual(made)
  expect(first[1]).toMatchObject({ revokedBy: 'user:alice' })
})

describe('an invalid key is rejected with the field at fault, and nothing is written', () => {
  test.each<[what: string, input: unknown, paths: readonly string[]]>([
    ['nothing', undefined, ['']],
    ['a list', [], ['']],
    ['everything missing', {}, ['tenant', 'project', 'subject', 'role']],
    ['the installation as tenant', { ...INPUT, tenantId: '_platform' }, ['tenant']],
    ['the installation as project', { ...INPUT, projectId: '_platform' }, ['project']],
    ['an empty project', { ...INPUT, projectId: '' }, ['project']],
    ['a long tenant', { ...INPUT, tenantId: 'a'.repeat(101) }, ['tenant']],
    ['a tenant with a slash', { ...INPUT, tenantId: 'a/b' }, ['tenant']],
    ['a tenant with a newline', { ...INPUT, tenantId: 'acme\n' }, ['tenant']],
    ['a project with U+0000', { ...INPUT, projectId: 'we\0b' }, ['project']],
    ['a list as the tenant', { ...INPUT, tenantId: ['acme'] }, ['tenant']],
    ['a subject without a type', { ...INPUT, subject: 'bob' }, ['subject']],
    ['a subject with U+0000', { ...INPUT, subject: 'user:b\0b' }, ['subject']],
    ['a subject with half a character', { ...INPUT, subject: 'user:\ud800' }, ['subject']],
    ['a number as the subject', { ...INPUT, subject: 1e300 }, ['subject']],
    ['an unknown role', { ...INPUT, role: 'owner' }, ['role']],
    ['a role that is a property of every object', { ...INPUT, role: '__proto__' }, ['role']],
    ['an unknown field', { ...INPUT, hash: 'x' }, ['hash']],
    ['a function', { ...INPUT, role: () => 'admin' }, ['']],
    ['a getter that throws', Object.defineProperty({}, 'role', { enumerable: true, get: fail }), ['']],
  ])('%s', async (_what, input, paths) => {
    const refusal = keys.create(CALLER, input as typeof INPUT)

    await expect(refusal).rejects.toBeInstanceOf(CarillonError)
    await expect(refusal).rejects.toMatchObject({
      code: 'invalid_input',
      problems: paths.map((path) => ({ path, message: expect.stringMatching(/^expected/) as string })),
    })
    expect(await countKeys()).toBe(0)
  })

  test.each(['', 'x', '\0', "' or true --", '01890000-0000-7000-8000-000000000000', 7, null, Symbol('id')])(
    'an invalid id is not found: %s',
    async (id) => {
      await expect(keys.revoke(CALLER, id as string)).rejects.toMatchObject({ code: 'key_not_found' })
    },
  )

  test.each<[options: unknown, path: string]>([
    [{ limit: 0 }, 'limit'],
    [{ limit: 201 }, 'limit'],
    [{ limit: 1e300 }, 'limit'],
    [{ limit: '2' }, 'limit'],
    [{ before: 'x' }, 'before'],
    [{ before: [] }, 'before'],
    [null, ''],
  ])('a page of %j', async (options, path) => {
    await expect(keys.list(CALLER, options as object)).rejects.toMatchObject({
      code: 'invalid_input',
      problems: [{ path }],
    })
  })
})

function fail(): never {
  throw new Error('boo')
}
