import type { Problem } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp, type TestApp } from './test-app.ts'

const world = await createTestApp()
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

interface List {
  readonly items: readonly { readonly id?: string; readonly name?: string; readonly subject?: string }[]
  readonly nextCursor: string | null
}

async function everything(app: TestApp, url: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const answer = await app.request('GET', `${url}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)
    const { items, nextCursor } = answer.json<List>()
    pages.push(items.map(({ id, name, subject }) => id ?? name ?? subject ?? ''))
    cursor = nextCursor
  }
  return pages
}

describe('pages', () => {
  test('schedules are paged with the newest first, and the last page has no cursor', async () => {
    const made: string[] = []
    for (let count = 0; count < 5; count += 1) made.push((await admin.schedules.create(DIGEST)).id)

    const pages = await everything(world, '/api/v1/schedules?limit=2')

    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1])
    expect(pages.flat()).toEqual(made.toReversed())
  })

  test('runs, keys and grants are paged in the same way', async () => {
    const { id } = await admin.schedules.create({ ...DIGEST, policy: { overlap: 'allow' } })
    const runs: string[] = []
    for (let count = 0; count < 3; count += 1) {
      runs.push((await admin.schedules.run(id)).id)
      await admin.keys.create({ project: 'default', subject: 'user:alice', role: 'member' })
    }
    const { key } = await admin.keys.create({ project: 'garden', subject: 'user:alice', role: 'admin' })
    const garden = world.client(key)
    const grants: string[] = []
    for (let count = 0; count < 3; count += 1) {
      grants.push((await garden.grants.create({ scopes: ['http:dispatch:*'] })).id)
    }
    const first = await garden.grants.list({ limit: 2 })
    const rest = await garden.grants.list({ limit: 2, cursor: first.nextCursor ?? '' })

    expect(await everything(world, `/api/v1/schedules/${id}/runs?limit=2`)).toEqual([[runs[2], runs[1]], [runs[0]]])
    expect((await everything(world, '/api/v1/keys?limit=2')).map(({ length }) => length)).toEqual([2, 1])
    expect([...first.items, ...rest.items].map((grant) => grant.id)).toEqual(grants.toReversed())
    expect(rest.nextCursor).toBeNull()
  })

  test('the history of a schedule is paged in the same way', async () => {
    const { id } = await admin.schedules.create(DIGEST)
    for (const revision of [1, 2, 3, 4]) await admin.schedules.edit(id, { name: `Name ${revision}` }, { revision })
    const revisions: number[][] = []

    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await admin.schedules.history(id, { limit: 2, ...(cursor !== '' && { cursor }) })
      revisions.push(page.items.map(({ revision }) => revision))
      cursor = page.nextCursor
    }

    expect(revisions).toEqual([[5, 4], [3, 2], [1]])
  })

  test('secrets and members are paged in the order of their names', async () => {
    for (const name of ['b', 'c', 'a']) {
      await admin.secrets.put(name, { value: 'kept' })
      await admin.members.put(`user:${name}`, { role: 'member' })
    }

    expect(await everything(world, '/api/v1/secrets?limit=2')).toEqual([['a', 'b'], ['c']])
    expect(await everything(world, '/api/v1/members?limit=2')).toEqual([['user:a', 'user:b'], ['user:c']])
  })

  test('a full last page has no cursor, at the greatest page length too', async () => {
    await using other = await createTestApp()
    for (let count = 0; count < 200; count += 1) await other.scheduler.create(CALLER, DIGEST)

    const full = await other.admin.schedules.list({ limit: 200 })
    await other.scheduler.create(CALLER, DIGEST)
    const more = await other.admin.schedules.list({ limit: 200 })
    const last = await other.admin.schedules.list({ limit: 200, cursor: more.nextCursor ?? '' })

    expect([full.items.length, full.nextCursor]).toEqual([200, null])
    expect([more.items.length, more.nextCursor]).toEqual([200, expect.any(String)])
    expect([last.items.length, last.nextCursor]).toEqual([1, null])
  })
})

describe('a cursor', () => {
  test.each(['', 'x', '%00', 'bnVsbA', 'W10', 'eyJhIjoxfQ', 'x'.repeat(3000)])(
    'the cursor %j is refused with a problem that names it',
    async (cursor) => {
      const answer = await request('GET', `/api/v1/schedules?cursor=${cursor}`)

      expect(answer.statusCode).toBe(400)
      expect(answer.json<Problem>().errors).toMatchObject([{ field: 'query.cursor' }])
    },
  )

  test('a cursor of one list is refused by other lists, and by the same list of another schedule', async () => {
    const { id } = await admin.schedules.create({ ...DIGEST, policy: { overlap: 'allow' } })
    const { id: other } = await admin.schedules.create(DIGEST)
    await admin.schedules.run(id)
    await admin.schedules.run(id)
    const ofRuns = (await admin.schedules.runs(id, { limit: 1 })).nextCursor ?? ''
    await admin.schedules.pause(id, { reason: 'holidays' })
    const ofHistory = (await admin.schedules.history(id, { limit: 1 })).nextCursor ?? ''
    const ofSchedules = (await admin.schedules.list({ limit: 1 })).nextCursor ?? ''
    const refused = { status: 400, errors: [{ field: 'query.cursor' }] }

    expect(ofRuns).not.toBe('')
    await expect(admin.schedules.list({ cursor: ofRuns })).rejects.toMatchObject(refused)
    await expect(admin.schedules.runs(other, { cursor: ofRuns })).rejects.toMatchObject(refused)
    expect(ofHistory).not.toBe('')
    await expect(admin.schedules.history(id, { cursor: ofRuns })).rejects.toMatchObject(refused)
    await expect(admin.schedules.runs(id, { cursor: ofHistory })).rejects.toMatchObject(refused)
    await expect(admin.schedules.history(other, { cursor: ofHistory })).rejects.toMatchObject(refused)
    await expect(admin.grants.list({ cursor: ofSchedules })).rejects.toMatchObject(refused)
    await expect(admin.keys.list({ cursor: ofSchedules })).rejects.toMatchObject(refused)
  })

  test('a cursor of an older version, or with an invalid position, is refused', async () => {
    for (const content of [
      [0, 'schedules', DIGEST.name],
      [1, 'schedules', 'x'],
      [1, 'schedules', null],
      [1, 'schedules'],
    ]) {
      const cursor = Buffer.from(JSON.stringify(content)).toString('base64url')

      await expect(admin.schedules.list({ cursor })).rejects.toMatchObject({ status: 400 })
    }
  })
})

const CALLER = { tenantId: 'default', projectId: 'default', subject: 'service:installation' }
