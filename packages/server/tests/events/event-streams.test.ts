import { ApiError, type Schedule } from '@carillon/api'
import { createDb, createPool, EventLog, type Caller, type EventLogPage } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { describe, expect, inject, test } from 'vitest'

import { Follower } from '../../src/events/follower.ts'
import { StreamPermission } from '../../src/events/permission.ts'
import { DIGEST } from '../http/example-schedules.ts'
import { ManualClock } from '../http/manual-clock.ts'
import { ADMIN_KEY, createTestApp, type TestApp } from '../http/test-app.ts'
import { EventReader, summaryOf } from './event-reader.ts'
import { PatientEventLog } from './patient-event-log.ts'

const HEARTBEAT_MS = 15_000
const POLL_MS = 250
const KEY_GOOD_FOR_MS = 2000

/** Reads a stream as text, chunk by chunk, over a real connection. */
async function openStream(url: string, key = ADMIN_KEY): Promise<{ read: () => Promise<string>; close: () => void }> {
  const abort = new AbortController()
  const response = await fetch(`${url}/api/v1/events`, {
    headers: { authorization: `Bearer ${key}` },
    signal: abort.signal,
  })
  expect(response.status).toBe(200)
  const reader = response.body?.getReader()
  return {
    read: async () => {
      const chunk = await reader?.read()
      return chunk === undefined || chunk.done ? 'the end' : new TextDecoder().decode(chunk.value as Uint8Array)
    },
    close: () => abort.abort(),
  }
}

describe('a stream', () => {
  test('is kept alive by a comment every 15 seconds', async () => {
    const clock = new ManualClock()
    await using world = await createTestApp({ clock })
    const stream = await openStream(await world.listen())
    expect(await stream.read()).toMatch(/^retry: 2000/)

    for (let beat = 0; beat < 3; beat += 1) {
      clock.advance(HEARTBEAT_MS)
      expect(await stream.read()).toMatch(/^: [^]*\n\n$/)
    }
    stream.close()
  })

  test('sends its position with each heartbeat, so that the cursor of a quiet project does not expire', async () => {
    const clock = new ManualClock()
    await using world = await createTestApp({ clock })
    const stream = await openStream(await world.listen())
    await stream.read()

    clock.advance(HEARTBEAT_MS)
    const [, cursor = ''] = /^: .*\nid: (\S+)\n\n$/.exec(await stream.read()) ?? []

    const installation = { tenantId: 'default', projectId: 'default', subject: 'service:installation' }
    expect(await world.eventLog.read(installation, cursor)).toMatchObject({ entries: [], isExpired: false })
    stream.close()
  })

  test('ends with the next heartbeat after its key was revoked', async () => {
    const clock = new ManualClock()
    await using world = await createTestApp({ clock })
    const { key, id } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    const stream = await openStream(await world.listen(), key)
    await stream.read()

    // There is no earlier heartbeat: its check could still be in progress, and heartbeats share a check.
    await world.admin.keys.revoke(id)
    clock.advance(HEARTBEAT_MS)

    expect(await stream.read()).toMatch(/^:/)
    expect(await stream.read()).toBe('the end')
  })

  test('ends instead of sending an event two seconds after its key was revoked', async () => {
    const clock = new ManualClock()
    await using database = await createDatabase()
    await using world = await createTestApp({
      clock,
      database,
      eventLog: new PatientEventLog({ db: createDb(database.pool) }),
    })
    const { key, id } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    const stream = await openStream(await world.listen(), key)
    expect(await stream.read()).toMatch(/^retry: 2000/)

    await world.admin.keys.revoke(id)
    await world.admin.schedules.create(DIGEST)
    clock.advance(KEY_GOOD_FOR_MS + 1)

    expect(await stream.read()).toBe('the end')
  })

  test('ends instead of sending an event two seconds after its subject was removed from the project', async () => {
    const clock = new ManualClock()
    await using database = await createDatabase()
    await using world = await createTestApp({
      clock,
      database,
      eventLog: new PatientEventLog({ db: createDb(database.pool) }),
    })
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    await world.admin.members.put('user:a', { role: 'member' })
    const stream = await openStream(await world.listen(), key)
    expect(await stream.read()).toMatch(/^retry: 2000/)

    await world.admin.members.remove('user:a')
    await world.admin.schedules.create(DIGEST)
    clock.advance(KEY_GOOD_FOR_MS + 1)

    expect(await stream.read()).toBe('the end')
  })

  test('counts towards the 50 streams that a key may follow, until it is closed', async () => {
    await using world = await createTestApp()
    const url = await world.listen()
    const left = whenAnswerCloses(world)
    const first = await openStream(url)
    const others = await Promise.all(Array.from({ length: 49 }, () => openStream(url)))

    const refused = await fetch(`${url}/api/v1/events`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    const { key } = await world.admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
    const ofOther = await openStream(url, key)
    first.close()
    await left
    const next = await openStream(url)

    expect(refused.headers.get('retry-after')).toBe('10')
    expect(await refused.json()).toMatchObject({ status: 429, code: 'rate_limited' })
    for (const stream of [...others, ofOther, next]) stream.close()
  })

  test('is logged once, when it ends', async () => {
    await using world = await createTestApp()
    const left = whenAnswerCloses(world)
    const stream = await openStream(await world.listen())
    expect(world.log).toEqual([])

    stream.close()
    await left

    expect(world.log).toMatchObject([{ route: '/api/v1/events', status: 200, keyId: 'installation' }])
  })
})

test('one poll of the event log serves all clients of a project, and there is no poll without clients', async () => {
  const clock = new ManualClock()
  await using database = await createDatabase()
  const eventLog = new CountingEventLog({ db: createDb(database.pool) })
  await using world = await createTestApp({ clock, database, eventLog })
  const url = await world.listen()
  const streams = [await openStream(url), await openStream(url), await openStream(url)]

  for (let poll = 1; poll <= 3; poll += 1) {
    clock.advance(POLL_MS)
    await eventLog.whenRead(poll)
  }

  expect(eventLog.reads).toBe(3)
  for (const stream of streams) stream.close()
  await whenNothingWaits(clock)
  clock.advance(10 * POLL_MS)
  expect(eventLog.reads).toBe(3)
})

test('while the database is unreachable, streams stay open and requests get 503; then both recover', async () => {
  await using database = await createDatabase()
  await using world = await createTestApp({ database })
  const url = await world.listen()
  await using reader = new EventReader(url, { lastEventId: await world.eventLog.tail() })
  const before = await world.admin.schedules.create(DIGEST)
  expect(summaryOf(await reader.next())).toBe(`schedule created ${before.id}`)

  await using outage = await cutOff(database)
  await expect(world.admin.schedules.list()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await outage.end()
  const after = await createWhenBack(world)

  expect(summaryOf(await reader.next())).toBe(`schedule created ${after.id}`)
})

describe('a follower', () => {
  test('that does not read is disconnected once 1 MiB waits for it', () => {
    const follower = createFollower()

    follower.sendUnchecked('x'.repeat(1_048_576))
    expect(follower.stream.destroyed).toBe(false)
    follower.sendUnchecked('x')

    expect(follower.stream.destroyed).toBe(true)
  })

  test('may read slowly while it catches up', async () => {
    const follower = createFollower()
    follower.sendUnchecked('x'.repeat(100_000))
    let isDrained = false

    const drained = follower.whenDrained().then(() => (isDrained = true))
    await new Promise(setImmediate)
    expect(isDrained).toBe(false)
    follower.stream.resume()

    expect(await drained).toBe(true)
    follower.stream.destroy()
  })

  test('gets each held event once, without the events that it has read itself', () => {
    const follower = createFollower()
    const change = (cursor: string) => ({ cursor, text: `${cursor} ` })

    follower.holdDeliveries()
    for (const cursor of ['2', '3']) follower.deliver(change(cursor))
    follower.sendUnchecked('1 2 ')
    follower.releaseDeliveries(new Set(['1', '2', '4']))
    for (const cursor of ['4', '5']) follower.deliver(change(cursor))
    follower.finishCatchUp()

    expect(String(follower.stream.read())).toBe('1 2 3 5 ')
    follower.stream.destroy()
  })

  test('receives nothing after its end', async () => {
    const follower = createFollower()

    follower.end()
    follower.sendUnchecked('late')
    follower.end()

    const chunks: unknown[] = []
    for await (const chunk of follower.stream) chunks.push(chunk)
    expect(chunks).toEqual([])
  })
})

/** A follower whose permission was checked just now. */
function createFollower(): Follower {
  const permission = new StreamPermission({ clock: new ManualClock(), isStillAllowed: async () => true })
  return new Follower(permission, (error) => expect.unreachable(String(error)))
}

/** Creates a schedule, and repeats the request while the service is unavailable. The pool notices its cut connections one by one. */
async function createWhenBack({ admin }: TestApp): Promise<Schedule> {
  for (;;) {
    try {
      return await admin.schedules.create(DIGEST)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'unavailable') throw error
    }
  }
}

class CountingEventLog extends EventLog {
  reads = 0
  #waiters: { readonly count: number; readonly resolve: () => void }[] = []

  override async read(caller: Caller, after: string, options?: { readonly limit?: number }): Promise<EventLogPage> {
    this.reads += 1
    const page = await super.read(caller, after, options)
    for (const { count, resolve } of this.#waiters) if (this.reads >= count) resolve()
    return page
  }

  async whenRead(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiters.push({ count, resolve })
    await promise
    // Gives the poller time to go back to sleep.
    await new Promise(setImmediate)
  }
}

/** Resolves once the response to the next request has closed. */
function whenAnswerCloses({ app }: TestApp): Promise<void> {
  return new Promise((resolve) => {
    app.server.once('request', (_request, response) => response.once('close', () => setImmediate(resolve)))
  })
}

async function whenNothingWaits(clock: ManualClock): Promise<void> {
  while (clock.waiting > 0) await new Promise(setImmediate)
}

/** Refuses new connections to a database and cuts the open ones. */
async function cutOff({ name }: TestDatabase): Promise<AsyncDisposable & { readonly end: () => Promise<void> }> {
  const url = new URL(inject('postgresUrl'))
  const pool = createPool({ connectionString: url.href, maxConnections: 1 })
  await pool.query(`alter database ${name} with allow_connections false`)
  await pool.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  return {
    end: async () => void (await pool.query(`alter database ${name} with allow_connections true`)),
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
