import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { Listener, notifyCancel } from '../../src/db/notify.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { fakeTimers, startFaultProxy } from '../fault-proxy.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** How long the listener waits for an answer, and then for the server to close its side. */
const TIMEOUT_MS = 5000
const CLOSE_MS = 500
const RUN_ID = '018f0000-0000-7000-8000-000000000001'

interface TestListener {
  readonly listener: Listener
  /** The lanes of all notifications so far; an empty text stands for any lane. */
  readonly agenda: () => readonly string[]
  /** Resolves with the id of the next run to cancel. */
  readonly whenCancelled: () => Promise<string>
}

function listenTo(connectionString: string): TestListener {
  const agenda: string[] = []
  let cancelled = Promise.withResolvers<string>()
  const listener = new Listener({
    connectionString,
    schema: 'carillon',
    clock: systemClock,
    events: new Events(),
    onAgenda: (lane) => agenda.push(lane),
    onCancel: (runId) => {
      cancelled.resolve(runId)
      cancelled = Promise.withResolvers()
    },
  })
  return { listener, agenda: () => agenda, whenCancelled: () => cancelled.promise }
}

async function countListeners(): Promise<number> {
  const { rows } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'carillon listener'`,
  )
  return rows.length
}

test('the listener receives notifications with their lanes; a new connection counts as a notification of any lane', async () => {
  const { listener, agenda, whenCancelled } = listenTo(database.url)
  const db = createDb(database.pool)

  expect(await listener.runOnce()).toEqual({ connected: 1 })
  expect(agenda()).toEqual([''])
  const cancelled = whenCancelled()
  for (const lane of ['http.7', '']) await database.pool.query('select pg_notify($1, $2)', ['carillon_agenda', lane])
  await notifyCancel(db, { runIds: [RUN_ID] })

  expect(await cancelled).toBe(RUN_ID)
  expect(agenda()).toEqual(['', 'http.7', ''])
  expect(await listener.runOnce()).toEqual({ connected: 0 })
  await listener.stop()
  expect(await countListeners()).toBe(0)
})

test('a connection that no longer answers is detected and replaced', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener, agenda, whenCancelled } = listenTo(proxy.url)
  await listener.runOnce()
  proxy.blackhole()
  using timers = fakeTimers()

  await Promise.all([
    expect(listener.runOnce()).rejects.toThrow('Query read timeout'),
    timers.advance(TIMEOUT_MS + CLOSE_MS),
  ])
  await proxy.whenClientsClosed()
  expect(await listener.runOnce()).toEqual({ connected: 1 })

  expect(agenda()).toEqual(['', ''])
  const cancelled = whenCancelled()
  await notifyCancel(createDb(database.pool), { runIds: [RUN_ID] })
  expect(await cancelled).toBe(RUN_ID)
  await listener.stop()
})

test('a stop does not wait for an unreachable server to close its side', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener } = listenTo(proxy.url)
  await listener.runOnce()
  proxy.blackhole()

  await listener.stop()
})

test('a connection that the server ends is replaced, and no connection is leaked', async () => {
  const { listener } = listenTo(database.url)
  await listener.runOnce()
  const { rows } = await database.pool.query<{ is_ended: boolean }>(
    `select pg_terminate_backend(pid, 5000) as is_ended from pg_stat_activity
     where datname = current_database() and application_name = 'carillon listener'`,
  )
  // Postgres may not have noticed yet that the connection of the test before is closed.
  expect(new Set(rows.map((row) => row.is_ended))).toEqual(new Set([true]))

  // The listener notices the end either before this query or because of it.
  const connected = await listener.runOnce().catch(() => listener.runOnce())

  expect(connected).toEqual({ connected: 1 })
  expect(await countListeners()).toBe(1)
  await listener.stop()
  expect(await countListeners()).toBe(0)
})

test('a connection that breaks before it listens is closed', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener } = listenTo(proxy.url)
  proxy.blackholeAt('listen ')
  using timers = fakeTimers()

  await Promise.all([
    expect(listener.runOnce()).rejects.toThrow('Query read timeout'),
    proxy.whenDropped('listen ').then(() => timers.advance(TIMEOUT_MS + CLOSE_MS)),
  ])

  await proxy.whenClientsClosed()
})
