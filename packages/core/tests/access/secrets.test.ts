import { randomBytes } from 'node:crypto'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { SecretRotation } from '../../src/access/secret-rotation.ts'
import { BuiltInSecretStore, Secrets } from '../../src/access/secrets.ts'
import {
  deleteSecret,
  findKeptSecret,
  listKnownSecrets,
  listSecrets,
  resealSecret,
  saveSecret,
} from '../../src/access/store/secrets.ts'
import { createDb, type Db, type Tx } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { CarillonError } from '../../src/kernel/errors.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { CALLER } from '../pipeline.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:00Z'
const CANARY = 'canary-b7f3a9'
const KEYS = [Buffer.alloc(32, 1)]
const OTHERS: readonly Caller[] = [
  { ...CALLER, tenantId: 'globex' },
  { ...CALLER, projectId: 'shop' },
]

let database: TestDatabase
let db: Db
let workerDb: Db
let clock: ManualClock
let secrets: Secrets
let store: BuiltInSecretStore

beforeAll(async () => {
  database = await createDatabase()
  db = createDb(database.pool)
  workerDb = createDb(createPool({ connectionString: database.url, role: 'carillon_worker' }))
  store = new BuiltInSecretStore({ db: workerDb, keys: KEYS })
})
afterAll(async () => {
  await workerDb.close()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await sql`delete from carillon.secrets`.execute(db)
  clock = new ManualClock(START)
  secrets = new Secrets({ db, clock, keys: KEYS })
})

/** The name of a secret, with the tenant and the project of a caller. */
function named(name: string, { tenantId, projectId }: Caller = CALLER) {
  return { tenantId, projectId, name }
}

/** Every row of every table, as text. */
async function dumpOfAll(): Promise<string> {
  const { rows } = await sql<{ table: string }>`
    select format('%I.%I', schemaname, tablename) as table
    from pg_catalog.pg_tables
    where schemaname like 'carillon%'`.execute(db)
  const dumps = await Promise.all(
    rows.map(async ({ table }) => {
      const { rows: lines } = await sql<{ line: string }>`select t::text as line from ${sql.raw(table)} as t`.execute(
        db,
      )
      return lines.map(({ line }) => line)
    }),
  )
  return dumps.flat().join('\n')
}

function expectNoCanary(text: string): void {
  for (const encoding of ['utf8', 'hex', 'base64'] as const) {
    expect(text).not.toContain(Buffer.from(CANARY).toString(encoding))
  }
}

async function countSecrets(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.secrets`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

test('only the secret store returns the value of a secret; put and list do not (I8)', async () => {
  const record = await secrets.put(CALLER, 'hook', CANARY)

  expect(record).toEqual({
    name: 'hook',
    version: 1,
    createdBy: 'user:alice',
    createdAt: Date.parse(START),
    updatedBy: 'user:alice',
    updatedAt: Date.parse(START),
  })
  expect(await secrets.list(CALLER)).toEqual([record])
  expect(await store.resolve(named('hook'))).toBe(CANARY)
  expect(await store.resolve(named('other'))).toBeUndefined()
})

test('a put replaces the value and counts up the version', async () => {
  await secrets.put(CALLER, 'hook', 'before')
  clock.advance(60_000)
  const record = await secrets.put({ ...CALLER, subject: 'user:bob' }, 'hook', CANARY)

  expect(record).toEqual({
    name: 'hook',
    version: 2,
    createdBy: 'user:alice',
    createdAt: Date.parse(START),
    updatedBy: 'user:bob',
    updatedAt: Date.parse(START) + 60_000,
  })
  expect(await store.resolve(named('hook'))).toBe(CANARY)
})

test('a deleted secret is not resolved, not listed and not deleted again', async () => {
  const record = await secrets.put(CALLER, 'hook', CANARY)

  expect(await secrets.delete(CALLER, 'hook')).toEqual(record)

  expect(await store.resolve(named('hook'))).toBeUndefined()
  expect(await secrets.list(CALLER)).toEqual([])
  await expect(secrets.delete(CALLER, 'hook')).rejects.toMatchObject({ code: 'secret_not_found' })
})

test('secrets are listed by name, page by page', async () => {
  for (const name of ['c', 'a', 'B', 'd']) await secrets.put(CALLER, name, CANARY)

  const first = await secrets.list(CALLER, { limit: 3 })
  const rest = await secrets.list(CALLER, { limit: 3, after: 'c' })

  expect(first.map(({ name }) => name)).toEqual(['B', 'a', 'c'])
  expect(rest.map(({ name }) => name)).toEqual(['d'])
})

test('concurrent puts of one name all succeed, one after the other, and the last value is resolved', async () => {
  const pool = createPool({ connectionString: database.url, maxConnections: 10 })
  const crowd = new Secrets({ db: createDb(pool), clock, keys: KEYS })

  const records = await Promise.all(
    Array.from({ length: 20 }, (_, index) => crowd.put(CALLER, 'hook', `value-${index}`)),
  )
  await pool.end()

  const versions = records.map(({ version }) => version)
  expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  expect(await store.resolve(named('hook'))).toBe(`value-${versions.indexOf(20)}`)
})

test('no table contains the value in plain text, neither of a replaced nor of a deleted secret', async () => {
  await secrets.put(CALLER, 'hook', 'before')
  await secrets.put(CALLER, 'hook', CANARY)
  await secrets.put(CALLER, 'gone', CANARY)
  await secrets.delete(CALLER, 'gone')

  const dump = await dumpOfAll()

  expect(dump).toContain('(acme,web,hook,2,')
  expectNoCanary(dump)
})

describe('a ciphertext that is copied over another cannot be decrypted', () => {
  test.each<[what: string, victim: Caller & { name: string }]>([
    ['from another tenant', { ...CALLER, tenantId: 'globex', name: 'hook' }],
    ['from another project', { ...CALLER, projectId: 'shop', name: 'hook' }],
    ['from another name', { ...CALLER, name: 'other' }],
  ])('%s', async (_what, victim) => {
    await secrets.put(victim, victim.name, CANARY)
    await secrets.put(CALLER, 'hook', 'mine')
    await sql`
      update carillon.secrets as mine
      set key_id = theirs.key_id, nonce = theirs.nonce, ciphertext = theirs.ciphertext, version = theirs.version
      from carillon.secrets as theirs
      where (mine.tenant_id, mine.project_id, mine.name) = ('acme', 'web', 'hook')
        and (theirs.tenant_id, theirs.project_id, theirs.name) = (${victim.tenantId}, ${victim.projectId}, ${victim.name})`.execute(
      db,
    )

    const refusal = await store.resolve(named('hook')).catch((error: unknown) => error)

    expect(refusal).toBeInstanceOf(CarillonError)
    expect(refusal).toMatchObject({ code: 'secrets_unavailable', message: expect.stringContaining('hook') as string })
    expectNoCanary(String((refusal as Error).stack))
    expect(await store.resolve(named(victim.name, victim))).toBe(CANARY)
  })

  test('from an earlier version', async () => {
    await secrets.put(CALLER, 'hook', CANARY)
    const before = await findKeptSecret(workerDb, named('hook'))
    await secrets.put(CALLER, 'hook', 'now')
    await sql`
      update carillon.secrets set nonce = ${before?.nonce}, ciphertext = ${before?.ciphertext} where name = 'hook'`.execute(
      db,
    )

    await expect(store.resolve(named('hook'))).rejects.toMatchObject({ code: 'secrets_unavailable' })
  })
})

describe('the encryption key', () => {
  const [newKey, lostKey] = [Buffer.alloc(32, 2), Buffer.alloc(32, 3)]

  test('can be replaced while secrets are in use: the new key encrypts, and the old key still decrypts', async () => {
    await secrets.put(CALLER, 'old', CANARY)
    const keys = [newKey, ...KEYS]
    await new Secrets({ db, clock, keys }).put(CALLER, 'new', CANARY)
    const both = new BuiltInSecretStore({ db: workerDb, keys })

    expect(await Promise.all(['old', 'new'].map((name) => both.resolve(named(name))))).toEqual([CANARY, CANARY])
    await expect(store.resolve(named('new'))).rejects.toMatchObject({ code: 'secrets_unavailable' })
  })

  test('can be removed after a rotation, which encrypts the secrets of every project again and keeps their versions', async () => {
    for (const caller of [CALLER, ...OTHERS]) await secrets.put(caller, 'hook', `${CANARY}-${caller.tenantId}`)
    await secrets.put(CALLER, 'hook', CANARY)
    await new Secrets({ db, clock, keys: [lostKey] }).put(CALLER, 'lost', CANARY)
    const listed = await secrets.list(CALLER)
    const rotation = new SecretRotation({ db: workerDb, keys: [newKey, ...KEYS] })

    expect(await rotation.reencryptAll()).toEqual({ reencrypted: 3, unreadable: [named('lost')] })
    expect(await rotation.reencryptAll()).toEqual({ reencrypted: 0, unreadable: [named('lost')] })

    const alone = new BuiltInSecretStore({ db: workerDb, keys: [newKey] })
    expect(await alone.resolve(named('hook'))).toBe(CANARY)
    for (const caller of OTHERS) expect(await alone.resolve(named('hook', caller))).toBe(`${CANARY}-${caller.tenantId}`)
    expect(await secrets.list(CALLER)).toEqual(listed)
    await expect(store.resolve(named('hook'))).rejects.toMatchObject({ code: 'secrets_unavailable' })
    expectNoCanary(await dumpOfAll())
  })

  test('is rotated page by page', async () => {
    await sql`
      insert into carillon.secrets
      select 'acme', 'web', 'lost' || number, 1, 'unknown', ${randomBytes(12)}, ${randomBytes(32)}, 'user:alice', now(),
        'user:alice', now()
      from generate_series(1, 201) as number`.execute(db)
    await secrets.put(CALLER, 'zz', CANARY)

    const { reencrypted, unreadable } = await new SecretRotation({
      db: workerDb,
      keys: [newKey, ...KEYS],
    }).reencryptAll()

    expect(reencrypted).toBe(1)
    expect(new Set(unreadable.map(({ name }) => name)).size).toBe(201)
    expect(unreadable).toHaveLength(201)
  })

  test('is needed to put and to resolve secrets, but not to list and to delete them', async () => {
    await secrets.put(CALLER, 'hook', CANARY)
    const keyless = new Secrets({ db, clock, keys: null })
    const refusal = { code: 'secrets_unavailable', message: expect.stringContaining('CARILLON_SECRETS_KEY') as string }

    await expect(keyless.put(CALLER, 'hook', CANARY)).rejects.toMatchObject(refusal)
    await expect(new BuiltInSecretStore({ db: workerDb, keys: null }).resolve(named('hook'))).rejects.toMatchObject(
      refusal,
    )
    expect(await keyless.list(CALLER)).toHaveLength(1)
    expect(await keyless.delete(CALLER, 'hook')).toMatchObject({ name: 'hook', version: 1 })
  })

  test.each([[[Buffer.alloc(31)]], [[]]])('is rejected unless it has 32 bytes: %j', (keys) => {
    expect(() => new Secrets({ db, keys })).toThrow(expect.objectContaining({ code: 'invalid_input' }) as Error)
    expect(() => new BuiltInSecretStore({ db: workerDb, keys })).toThrow(CarillonError)
  })
})

describe('I9: another project does not see a secret', () => {
  test.each(OTHERS)('for %j', async (other) => {
    const record = await secrets.put(CALLER, 'hook', CANARY)

    expect(await secrets.list(other)).toEqual([])
    await expect(secrets.delete(other, 'hook')).rejects.toMatchObject({ code: 'secret_not_found' })
    expect(await store.resolve(named('hook', other))).toBeUndefined()
    expect(await secrets.put(other, 'hook', 'theirs')).toMatchObject({ version: 1 })

    expect(await secrets.list(CALLER)).toEqual([record])
    expect(await store.resolve(named('hook'))).toBe(CANARY)
  })

  test.each([null, ...OTHERS])('a transaction in the scope %j neither reads nor writes it', async (scope) => {
    await secrets.put(CALLER, 'hook', CANARY)
    const sealed = { keyId: 'k', nonce: randomBytes(12), ciphertext: randomBytes(32), version: 1 }
    const within = <Result>(work: (tx: Tx) => Promise<Result>) => transactScoped(db, systemClock, scope, work)

    expect(await within((tx) => findKeptSecret(tx, named('hook')))).toBeUndefined()
    expect(await within((tx) => listSecrets(tx, { ...named(''), after: null, limit: 10 }))).toEqual([])
    expect(await within((tx) => listKnownSecrets(tx, { ...named(''), names: ['hook'] }))).toEqual(new Set())
    expect(await within((tx) => deleteSecret(tx, named('hook')))).toBeUndefined()
    await within((tx) => resealSecret(tx, { ...named('hook'), ...sealed }))
    const write = within((tx) => saveSecret(tx, { ...named('new'), ...sealed, actor: 'user:eve', now: null }))
    await expect(write).rejects.toMatchObject({ code: '42501' })

    expect(await store.resolve(named('hook'))).toBe(CANARY)
    expect(await countSecrets()).toBe(1)
  })

  test('a worker reads secrets and cannot change them', async () => {
    await secrets.put(CALLER, 'hook', CANARY)

    await expect(sql`update carillon.secrets set version = 9`.execute(workerDb)).rejects.toMatchObject({
      code: '42501',
    })
    await expect(sql`delete from carillon.secrets`.execute(workerDb)).rejects.toMatchObject({ code: '42501' })
  })
})

describe('an invalid input is rejected and writes nothing, and no message contains what may be a value', () => {
  test.each<[what: string, name: unknown, value: unknown, paths: string[]]>([
    ['an empty name', '', CANARY, ['name']],
    ['a long name', 'a'.repeat(101), CANARY, ['name']],
    ['a name that begins with a dot', '.hook', CANARY, ['name']],
    ['a name with a slash', 'a/b', CANARY, ['name']],
    ['a name with a newline', 'hook\n', CANARY, ['name']],
    ['a value in the place of the name', ` ${CANARY}`, 'x', ['name']],
    ['a number as the name', 7, CANARY, ['name']],
    ['an empty value', 'hook', '', ['value']],
    ['a long value', 'hook', CANARY.padEnd(8193, 'x'), ['value']],
    ['a value with a newline', 'hook', `${CANARY}\n`, ['value']],
    ['a value with U+0000', 'hook', `${CANARY}\0`, ['value']],
    ['a value with a control character above ASCII', 'hook', `${CANARY}\u0085`, ['value']],
    ['a value with half a character', 'hook', `${CANARY}\ud800`, ['value']],
    ['no value', 'hook', undefined, ['value']],
    ['a list as the value', 'hook', [CANARY], ['value']],
    ['neither name nor value', null, null, ['name', 'value']],
  ])('%s', async (_what, name, value, paths) => {
    const refusal = await secrets.put(CALLER, name as string, value as string).catch((error: unknown) => error)

    expect(refusal).toBeInstanceOf(CarillonError)
    expect(refusal).toMatchObject({
      code: 'invalid_input',
      problems: paths.map((path) => ({ path, message: expect.stringMatching(/^expected/) as string })),
    })
    expectNoCanary(`${(refusal as Error).stack} ${JSON.stringify(refusal)}`)
    expect(await countSecrets()).toBe(0)
  })

  test('the longest name and value are accepted, with letters of any script', async () => {
    const [name, value] = ['a'.repeat(100), `ü 語 🙂 "'\\ ${'x'.repeat(8192)}`.slice(0, 8192)]

    await secrets.put(CALLER, name, value)

    expect(await store.resolve(named(name))).toBe(value)
  })

  test.each(['', "' or true --", '\0', 'a'.repeat(101), 7, null])(
    'a delete by an invalid name finds nothing: %j',
    async (name) => {
      await secrets.put(CALLER, 'hook', CANARY)

      await expect(secrets.delete(CALLER, name as string)).rejects.toMatchObject({ code: 'secret_not_found' })
      expect(await countSecrets()).toBe(1)
    },
  )

  test.each<[options: unknown, path: string]>([
    [{ limit: 0 }, 'limit'],
    [{ limit: 201 }, 'limit'],
    [{ limit: '2' }, 'limit'],
    [{ after: '' }, 'after'],
    [{ after: '\0' }, 'after'],
    [{ after: 7 }, 'after'],
    [{ before: 'a' }, 'before'],
    [null, ''],
  ])('a page of %j', async (options, path) => {
    await expect(secrets.list(CALLER, options as object)).rejects.toMatchObject({
      code: 'invalid_input',
      problems: [{ path }],
    })
  })

  test.each([{ tenantId: '_platform' }, { projectId: '_platform' }, { tenantId: '' }])(
    'a caller with %j',
    async (where) => {
      await expect(secrets.put({ ...CALLER, ...where }, 'hook', CANARY)).rejects.toMatchObject({
        code: 'invalid_input',
      })
    },
  )
})
