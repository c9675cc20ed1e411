import type { Client } from '@carillon/api'
import { afterAll, describe, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp()
const { admin } = world
afterAll(() => world[Symbol.asyncDispose]())

const FORBIDDEN = { status: 403, code: 'forbidden' }

/** A caller with a key that has the role admin. */
async function newcomer(subject: string) {
  const { key } = await admin.keys.create({ project: 'default', subject, role: 'admin' })
  return { key, client: world.client(key) }
}

async function listedIds(client: Client): Promise<string[]> {
  return (await client.schedules.list()).items.map(({ id }) => id)
}

describe('members', () => {
  test('a subject that is not listed has the role of its key', async () => {
    const { client } = await newcomer('user:nora')

    expect(await client.schedules.create(DIGEST)).toMatchObject({ createdBy: 'user:nora' })
  })

  test('a member may not do more than its role allows, whatever its key allows, and a higher role takes effect at once', async () => {
    const { client } = await newcomer('user:mia')
    const { id } = await client.schedules.create(DIGEST)

    const lowered = await admin.members.put('user:mia', { role: 'member' })
    const refused = client.schedules.create(DIGEST)
    await expect(refused).rejects.toMatchObject(FORBIDDEN)
    expect(await listedIds(client)).toContain(id)
    await admin.members.put('user:mia', { role: 'admin' })

    expect(lowered).toMatchObject({ subject: 'user:mia', role: 'member', addedBy: 'service:installation' })
    expect((await client.schedules.create(DIGEST)).ownerSubject).toBe('user:mia')
  })

  test('a member may not do more than its key allows, whatever its role', async () => {
    const { key } = await admin.keys.create({ project: 'default', subject: 'user:olaf', role: 'member' })

    await admin.members.put('user:olaf', { role: 'admin' })

    await expect(world.client(key).schedules.create(DIGEST)).rejects.toMatchObject(FORBIDDEN)
  })

  test('a removed member is refused from the next request on, with any key, until it is added again', async () => {
    const [first, second] = [await newcomer('user:rosa'), await newcomer('user:rosa')]
    await admin.members.put('user:rosa', { role: 'admin' })
    const { id } = await first.client.schedules.create(DIGEST)

    const removed = await admin.members.remove('user:rosa')

    expect(removed).toMatchObject({ subject: 'user:rosa', removedBy: 'service:installation' })
    for (const { client } of [first, second]) {
      await expect(client.schedules.list()).rejects.toMatchObject(FORBIDDEN)
      await expect(client.schedules.create(DIGEST)).rejects.toMatchObject(FORBIDDEN)
      await expect(client.members.put('user:rosa', { role: 'admin' })).rejects.toMatchObject(FORBIDDEN)
    }
    expect(await admin.members.remove('user:rosa')).toEqual(removed)
    await admin.members.put('user:rosa', { role: 'member' })
    expect(await listedIds(first.client)).toContain(id)
  })

  test('a subject that was never listed, such as one with a token, is removed by one call', async () => {
    const { client } = await newcomer('user:tom')
    const { id } = await client.schedules.create(DIGEST)
    expect(await listedIds(client)).toContain(id)

    const removed = await admin.members.remove('user:tom')

    expect(removed).toMatchObject({ subject: 'user:tom', role: 'member', removedBy: 'service:installation' })
    await expect(client.schedules.list()).rejects.toMatchObject(FORBIDDEN)
    expect(await admin.members.remove('user:tom')).toEqual(removed)
  })

  test('I9: a member of one project has no role in another', async () => {
    const { key } = await admin.keys.create({ project: 'garden', subject: 'user:rosa', role: 'admin' })
    await admin.members.put('user:rosa', { role: 'admin' })
    await admin.members.remove('user:rosa')
    expect((await world.client(key).members.list()).items).toEqual([])

    await world.client(key).members.remove('user:nora')

    expect((await admin.members.list()).items.map(({ subject }) => subject)).not.toContain('user:nora')
  })

  test.each(['alice', 'user:', 'user:a b', '*', 'service:installation'])(
    'the subject %j is refused with a problem that names the field',
    async (subject) => {
      const refused = { status: 400, code: 'invalid_input', errors: [{ field: 'path.id' }] }
      await expect(admin.members.put(subject, { role: 'admin' })).rejects.toMatchObject(refused)
      await expect(admin.members.remove(subject)).rejects.toMatchObject(refused)
    },
  )
})

describe('permission checks', () => {
  test('a failing permission check gives 503, a negative one 403, and the installation is never checked', async () => {
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

  test('a permission check receives the role that the operation needs, and the scope of the key', async () => {
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
