import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { AGENDA_CHANNEL, Listener, notifyCancel } from '../../src/db/notify.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { holdTimers, startFaultProxy } from '../fault-proxy.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase({ content: 'empty' })
})
afterAll(() => database[Symbol.asyncDispose]())

/** How long the listener waits for an answer, and for the server's goodbye. */
const TIMEOUT_MS = 5000
const GOODBYE_MS = 500
const RUN_ID = '018f0000-0000-7000-8000-000000000001'

interface Heard {
  readonly listener: Listener
  /** The lanes of which the agenda was told; an empty one is any. */
  readonly agenda: () => readonly string[]
  /** The next run to cancel. */
  readonly whenCancelled: () => Promise<string>
}

function listenTo(connectionString: string): Heard {
  const agenda: string[] = []
  let cancelled = Promise.withResolvers<string>()
  const listener = new Listener({
    connectionString,
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

async function listening(): Promise<number> {
  const { rows } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'carillon listener'`,
  )
  return rows.length
}

test('what is notified on any connection is heard, with its lane, and all of the agenda is told of after each new connection', async () => {
  const { listener, agenda, whenCancelled } = listenTo(database.url)
  const db = createDb(database.pool)

  expect(await listener.runOnce()).toEqual({ connected: 1 })
  expect(agenda()).toEqual([''])
  const cancelled = whenCancelled()
  for (const lane of ['http.7', '']) await database.pool.query('select pg_notify($1, $2)', [AGENDA_CHANNEL, lane])
  await notifyCancel(db, { runIds: [RUN_ID] })

  expect(await cancelled).toBe(RUN_ID)
  expect(agenda()).toEqual(['', 'http.7', ''])
  expect(await listener.runOnce()).toEqual({ connected: 0 })
  await listener.stop()
  expect(await listening()).toBe(0)
})

test('a connection on which nothing comes any more is found out and replaced, not taken for silence', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener, agenda, whenCancelled } = listenTo(proxy.url)
  await listener.runOnce()
  proxy.blackhole()
  using timers = holdTimers()

  await Promise.all([
    expect(listener.runOnce()).rejects.toThrow('Query read timeout'),
    timers.advance(TIMEOUT_MS + GOODBYE_MS),
  ])
  await proxy.whenLeft()
  expect(await listener.runOnce()).toEqual({ connected: 1 })

  expect(agenda()).toEqual(['', ''])
  const cancelled = whenCancelled()
  await notifyCancel(createDb(database.pool), { runIds: [RUN_ID] })
  expect(await cancelled).toBe(RUN_ID)
  await listener.stop()
})

test('a stop does not wait for the goodbye of a server that will never say it', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener } = listenTo(proxy.url)
  await listener.runOnce()
  proxy.blackhole()

  await listener.stop()
})

test('a connection that is ended by the server is replaced, and none is left behind', async () => {
  const { listener } = listenTo(database.url)
  await listener.runOnce()
  const { rows } = await database.pool.query(
    `select pg_terminate_backend(pid, 5000) as is_ended from pg_stat_activity
     where datname = current_database() and application_name = 'carillon listener'`,
  )
  expect(rows).toEqual([{ is_ended: true }])

  // It may find out by its query, or have been told of it before.
  const connected = await listener.runOnce().catch(() => listener.runOnce())

  expect(connected).toEqual({ connected: 1 })
  expect(await listening()).toBe(1)
  await listener.stop()
  expect(await listening()).toBe(0)
})

test('a connection that breaks before it listens is not left behind', async () => {
  await using proxy = await startFaultProxy(database.url)
  const { listener } = listenTo(proxy.url)
  proxy.blackholeAt('listen ')
  using timers = holdTimers()

  await Promise.all([
    expect(listener.runOnce()).rejects.toThrow('Query read timeout'),
    proxy.whenSwallowed('listen ').then(() => timers.advance(TIMEOUT_MS + GOODBYE_MS)),
  ])

  await proxy.whenLeft()
})
