import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp()
const { admin } = world
afterAll(() => world[Symbol.asyncDispose]())

const FORBIDDEN = { status: 403, code: 'forbidden' }

/** A caller whose key has the role admin. */
async function newcomer(subject: string) {
  const { key } = await admin.keys.create({ project: 'default', subject, role: 'admin' })
  return { key, client: world.client(key) }
}

describe('members', () => {
  test('that are not listed have the role of their key', async () => {
    const { client } = await newcomer('user:nora')

    expect(await client.schedules.create(DIGEST)).toMatchObject({ createdBy: 'user:nora' })
  })

  test('may not do more than their role, whatever their key says; a higher role takes effect at once', async () => {
    const { client } = await newcomer('user:mia')

    const lowered = await admin.members.put('user:mia', { role: 'member' })
    const refused = client.schedules.create(DIGEST)
    await expect(refused).rejects.toMatchObject(FORBIDDEN)
    expect((await client.schedules.list()).items.length).toBeGreaterThanOrEqual(0)
    await admin.members.put('user:mia', { role: 'admin' })

    expect(lowered).toMatchObject({ subject: 'user:mia', role: 'member', addedBy: 'service:installation' })
    expect((await client.schedules.create(DIGEST)).ownerSubject).toBe('user:mia')
  })

  test('may not do more than their key says', async () => {
    const { key } = await admin.keys.create({ project: 'default', subject: 'user:olaf', role: 'member' })

    await admin.members.put('user:olaf', { role: 'admin' })

    await expect(world.client(key).schedules.create(DIGEST)).rejects.toMatchObject(FORBIDDEN)
  })

  test('a removed member may do nothing from the next request on, with any key, until added again', async () => {
    const [first, second] = [await newcomer('user:rosa'), await newcomer('user:rosa')]
    await admin.members.put('user:rosa', { role: 'admin' })
    expect((await first.client.schedules.list()).nextCursor).toBeDefined()

    const removed = await admin.members.remove('user:rosa')

    expect(removed).toMatchObject({ subject: 'user:rosa', removedBy: 'service:installation' })
    for (const { client } of [first, second]) {
      await expect(client.schedules.list()).rejects.toMatchObject(FORBIDDEN)
      await expect(client.schedules.create(DIGEST)).rejects.toMatchObject(FORBIDDEN)
      await expect(client.members.put('user:rosa', { role: 'admin' })).rejects.toMatchObject(FORBIDDEN)
    }
    expect(await admin.members.remove('user:rosa')).toEqual(removed)
    await admin.members.put('user:rosa', { role: 'member' })
    expect((await first.client.schedules.list()).nextCursor).toBeDefined()
  })

  test('a subject that was never listed, such as one with a token, is removed by one call', async () => {
    const { client } = await newcomer('user:tom')
    expect((await client.schedules.list()).nextCursor).toBeDefined()

    const removed = await admin.members.remove('user:tom')

    expect(removed).toMatchObject({ subject: 'user:tom', role: 'member', removedBy: 'service:installation' })
    await expect(client.schedules.list()).rejects.toMatchObject(FORBIDDEN)
    expect(await admin.members.remove('user:tom')).toEqual(removed)
  })

  test('I9: of one project have no role in another', async () => {
    const { key } = await admin.keys.create({ project: 'garden', subject: 'user:rosa', role: 'admin' })
    await admin.members.put('user:rosa', { role: 'admin' })
    await admin.members.remove('user:rosa')
    expect((await world.client(key).members.list()).items).toEqual([])

    await world.client(key).members.remove('user:nora')

    expect((await admin.members.list()).items.map(({ subject }) => subject)).not.toContain('user:nora')
  })

  test.each(['alice', 'user:', 'user:a b', '*', 'service:installation'])(
    'the subject %j is refused by its place',
    async (subject) => {
      const refused = { status: 400, code: 'invalid_input', errors: [{ field: 'path.id' }] }
      await expect(admin.members.put(subject, { role: 'admin' })).rejects.toMatchObject(refused)
      await expect(admin.members.remove(subject)).rejects.toMatchObject(refused)
    },
  )
})

describe('a permission check that fails', () => {
  test('refuses everyone but the installation: 503, and 403 once it answers no', async () => {
    let answer: () => Promise<boolean> = () => Promise.reject(new Error('away'))
    await using other = await createTestApp({ authorization: { isAllowed: () => answer() } })
    const { key } = await other.admin.keys.create({ project: 'default', subject: 'user:a', role: 'admin' })
    const client = other.client(key)

    await expect(client.schedules.list()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    await expect(client.schedules.create(DIGEST)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    answer = async () => false
    await expect(client.schedules.list()).rejects.toMatchObject(FORBIDDEN)
    answer = async () => true

    expect((await client.schedules.list()).items).toEqual([])
  })

  test('receives the role that the operation needs, and the scope of the key', async () => {
    const asked: unknown[] = []
    await using other = await createTestApp({
      authorization: {
        isAllowed: async (request) => {
          asked.push(request)
          return true
        },
      },
    })
    const place = { tenant: 'acme', project: 'web' }
    const { key } = await other.admin.keys.create({ ...place, subject: 'user:a', role: 'admin' })

    await other.client(key).schedules.list()
    await other.client(key).schedules.create(DIGEST)

    const who = { tenantId: 'acme', projectId: 'web', subject: 'user:a' }
    expect(asked).toEqual([
      { ...who, role: 'member' },
      { ...who, role: 'admin' },
    ])
  })
})
