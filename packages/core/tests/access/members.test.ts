import type { Role } from '@carillon/api'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { MembershipAuthorization, Members } from '../../src/access/members.ts'
import { findMember, listMembers, removeMember, saveMember } from '../../src/access/store/members.ts'
import { createDb, type Db, type Tx } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { CALLER } from '../pipeline.ts'
import { sql } from '../sql.ts'

const START = '2026-03-02T09:00:00Z'
const SCOPE = { tenantId: CALLER.tenantId, projectId: CALLER.projectId }
const OTHERS: readonly Caller[] = [
  { ...CALLER, tenantId: 'globex' },
  { ...CALLER, projectId: 'shop' },
]

let database: TestDatabase
let db: Db
let clock: ManualClock
let members: Members
let authorization: MembershipAuthorization

beforeAll(async () => {
  database = await createDatabase()
  db = createDb(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await sql`delete from carillon.members`.execute(db)
  clock = new ManualClock(START)
  members = new Members({ db, clock })
  authorization = new MembershipAuthorization({ db, clock })
})

async function countMembers(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from carillon.members`.execute(db)
  return rows[0]?.count ?? Number.NaN
}

test('a member is stored with the subject that added it, and a new role replaces the old one', async () => {
  const member = await members.put(CALLER, 'user:bob', 'member')
  clock.advance(60_000)
  const promoted = await members.put({ ...CALLER, subject: 'user:carol' }, 'user:bob', 'admin')

  const kept = {
    subject: 'user:bob',
    addedBy: 'user:alice',
    addedAt: Date.parse(START),
    removedBy: null,
    removedAt: null,
  }
  expect(member).toEqual({ ...kept, role: 'member' })
  expect(promoted).toEqual({ ...kept, role: 'admin', addedBy: 'user:carol', addedAt: Date.parse(START) + 60_000 })
  expect(await members.find(SCOPE, 'user:bob')).toEqual(promoted)
  expect(await members.find(SCOPE, 'user:dave')).toBeUndefined()
  expect(await countMembers()).toBe(1)
})

test('a second removal changes nothing, and a removed member can be added again', async () => {
  await members.put(CALLER, 'user:bob', 'admin')

  const removed = await members.remove(CALLER, 'user:bob')
  clock.advance(60_000)
  const again = await members.remove({ ...CALLER, subject: 'user:carol' }, 'user:bob')
  const back = await members.put(CALLER, 'user:bob', 'member')

  expect(removed).toMatchObject({ role: 'admin', removedBy: 'user:alice', removedAt: Date.parse(START) })
  expect(again).toEqual(removed)
  expect(back).toMatchObject({ role: 'member', removedBy: null, removedAt: null })
})

test('a subject that was never a member can be removed, and is then listed as removed', async () => {
  const removed = await members.remove(CALLER, 'user:dave')
  clock.advance(60_000)
  const again = await members.remove({ ...CALLER, subject: 'user:carol' }, 'user:dave')

  const [by, at] = ['user:alice', Date.parse(START)]
  expect(removed).toEqual({
    subject: 'user:dave',
    role: 'member',
    addedBy: by,
    addedAt: at,
    removedBy: by,
    removedAt: at,
  })
  expect(again).toEqual(removed)
  expect(await members.list(CALLER)).toEqual([removed])
  expect(await authorization.isAllowed({ ...SCOPE, subject: 'user:dave', role: 'member' })).toBe(false)
})

test('members are listed page by page, by subject, removed members included', async () => {
  for (const subject of ['user:c', 'service:b', 'user:a']) await members.put(CALLER, subject, 'member')
  await members.remove(CALLER, 'service:b')

  const first = await members.list(CALLER, { limit: 2 })
  const rest = await members.list(CALLER, { limit: 2, after: 'user:a' })

  expect(first.map(({ subject }) => subject)).toEqual(['service:b', 'user:a'])
  expect(rest.map(({ subject }) => subject)).toEqual(['user:c'])
})

test('concurrent puts and removals of one member all succeed', async () => {
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0 ? members.put(CALLER, 'user:bob', 'admin') : members.remove(CALLER, 'user:bob'),
    ),
  )

  expect(await countMembers()).toBe(1)
})

describe('the built-in authorization', () => {
  test.each<[what: string, row: Role | null, isRemoved: boolean, asked: Role, isAllowed: boolean]>([
    ['a subject without a row may do what its credential permits', null, false, 'admin', true],
    ['a subject without a row may read', null, false, 'member', true],
    ['a member reads', 'member', false, 'member', true],
    ['a member does not write, whatever its credential permits', 'member', false, 'admin', false],
    ['an admin writes', 'admin', false, 'admin', true],
    ['an admin reads', 'admin', false, 'member', true],
    ['a removed member does not read', 'member', true, 'member', false],
    ['a removed admin does not read', 'admin', true, 'member', false],
    ['a removed admin does not write', 'admin', true, 'admin', false],
  ])('%s', async (_what, row, isRemoved, asked, isAllowed) => {
    if (row !== null) await members.put(CALLER, 'user:bob', row)
    if (isRemoved) await members.remove(CALLER, 'user:bob')

    expect(await authorization.isAllowed({ ...SCOPE, subject: 'user:bob', role: asked })).toBe(isAllowed)
  })

  test('a removed member that is added again may act in its new role', async () => {
    await members.put(CALLER, 'user:bob', 'admin')
    await members.remove(CALLER, 'user:bob')
    await members.put(CALLER, 'user:bob', 'member')

    expect(await authorization.isAllowed({ ...SCOPE, subject: 'user:bob', role: 'member' })).toBe(true)
    expect(await authorization.isAllowed({ ...SCOPE, subject: 'user:bob', role: 'admin' })).toBe(false)
  })

  test('a member that was removed from one project may still act in another (I9)', async () => {
    await members.put(CALLER, 'user:bob', 'member')
    await members.remove(CALLER, 'user:bob')

    for (const other of OTHERS) {
      expect(await authorization.isAllowed({ ...other, subject: 'user:bob', role: 'admin' })).toBe(true)
    }
  })

  test('a request fails if the members cannot be read', async () => {
    const pool = createPool({ connectionString: database.url })
    const unreachable = new MembershipAuthorization({ db: createDb(pool) })
    await pool.end()

    await expect(unreachable.isAllowed({ ...SCOPE, subject: 'user:bob', role: 'member' })).rejects.toThrow('pool')
  })
})

describe('I9: another project does not see a member', () => {
  test.each(OTHERS)('for %j', async (other) => {
    const member = await members.put(CALLER, 'user:bob', 'member')

    expect(await members.list(other)).toEqual([])
    expect(await members.find(other, 'user:bob')).toBeUndefined()
    await members.put(other, 'user:bob', 'admin')
    await members.remove(other, 'user:bob')

    expect(await members.list(CALLER)).toEqual([member])
  })

  test.each([null, ...OTHERS])('a transaction in the scope %j neither reads nor writes it', async (scope) => {
    const member = await members.put(CALLER, 'user:bob', 'member')
    const [bob, doing] = [
      { ...SCOPE, subject: 'user:bob' },
      { actor: 'user:eve', now: null },
    ]
    const within = <Result>(work: (tx: Tx) => Promise<Result>) => transactScoped(db, systemClock, scope, work)

    expect(await within((tx) => findMember(tx, bob))).toBeUndefined()
    expect(await within((tx) => listMembers(tx, { ...SCOPE, after: null, limit: 10 }))).toEqual([])
    for (const subject of ['user:bob', 'user:new']) {
      const save = within((tx) => saveMember(tx, { ...bob, ...doing, subject, role: 'admin' }))
      await expect(save).rejects.toMatchObject({ code: '42501' })
      const remove = within((tx) => removeMember(tx, { ...bob, ...doing, subject }))
      await expect(remove).rejects.toMatchObject({ code: '42501' })
    }

    expect(await members.list(CALLER)).toEqual([member])
    expect(await countMembers()).toBe(1)
  })
})

describe('an invalid input is rejected and writes nothing', () => {
  test.each<[what: string, subject: unknown, role: unknown, paths: string[]]>([
    ['a subject without a type', 'bob', 'member', ['subject']],
    ['a subject with a space', 'user:b b', 'member', ['subject']],
    ['a subject with U+0000', 'user:b\0b', 'member', ['subject']],
    ['a subject with half a character', 'user:\ud800', 'member', ['subject']],
    ['a long subject', `user:${'b'.repeat(201)}`, 'member', ['subject']],
    ['an unknown role', 'user:bob', 'owner', ['role']],
    ['neither subject nor role', undefined, null, ['subject', 'role']],
  ])('%s', async (_what, subject, role, paths) => {
    await expect(members.put(CALLER, subject as string, role as Role)).rejects.toMatchObject({
      code: 'invalid_input',
      problems: paths.map((path) => ({ path, message: expect.stringMatching(/^expected/) as string })),
    })
    expect(await countMembers()).toBe(0)
  })

  test.each(['', 'bob', "user:' or true --", '\0', 'service:installation', 7, null])(
    'a removal of the subject %j',
    async (subject) => {
      await members.put(CALLER, 'user:bob', 'member')

      await expect(members.remove(CALLER, subject as string)).rejects.toMatchObject({
        code: 'invalid_input',
        problems: [{ path: 'subject', message: expect.stringMatching(/^expected a typed subject/) as string }],
      })
      expect(await members.find(SCOPE, subject as string)).toBeUndefined()
      expect(await members.find(SCOPE, 'user:bob')).toMatchObject({ removedAt: null })
      expect(await countMembers()).toBe(1)
    },
  )

  test.each<[options: unknown, path: string]>([
    [{ limit: 0 }, 'limit'],
    [{ after: '\0' }, 'after'],
    [{ before: 'a' }, 'before'],
  ])('a page of %j', async (options, path) => {
    await expect(members.list(CALLER, options as object)).rejects.toMatchObject({
      code: 'invalid_input',
      problems: [{ path }],
    })
  })

  test.each([{ tenantId: '_platform' }, { projectId: '_platform' }])('a caller with %j', async (where) => {
    await expect(members.put({ ...CALLER, ...where }, 'user:bob', 'member')).rejects.toMatchObject({
      code: 'invalid_input',
    })
    await expect(authorization.isAllowed({ ...SCOPE, ...where, subject: 'user:bob', role: 'member' })).rejects.toThrow(
      'expected 1 to 100 letters',
    )
  })
})
