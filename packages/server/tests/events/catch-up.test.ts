import { once } from 'node:events'
import type { Readable } from 'node:stream'

import { createDb, Events, FailureRecord, EventLog, Scheduler, type Caller, type EventLogPage } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, test } from 'vitest'

import { INSTALLATION } from '../../src/auth/identity.ts'
import { EventHub } from '../../src/events/hub.ts'
import { toEvent } from '../../src/http/wire.ts'
import { createLogger } from '../../src/start/log.ts'
import { EchoTarget } from '../http/echo-target.ts'
import { DIGEST } from '../http/example-schedules.ts'
import { ManualClock } from '../http/manual-clock.ts'

const UNLIMITED = { acquire: () => undefined, release: () => undefined }
const POLL_MS = 250

type Step = (read: () => Promise<EventLogPage>) => Promise<EventLogPage>

/** The event log of a database. A test can replace single reads, which are counted from 1. */
class SteppedEventLog extends EventLog {
  readonly steps = new Map<number, Step>()
  reads = 0

  override read(caller: Caller, after: string, options?: { readonly limit?: number }): Promise<EventLogPage> {
    this.reads += 1
    const step = this.steps.get(this.reads)
    return step === undefined ? super.read(caller, after, options) : step(() => this.readSome(caller, after))
  }

  /** Reads until there is an entry. Committed entries become visible once no older transaction is open on the whole Postgres server. */
  async readSome(caller: Caller, after: string): Promise<EventLogPage> {
    for (;;) {
      const page = await super.read(caller, after)
      if (page.entries.length > 0) return page
    }
  }
}

async function open() {
  const database = await createDatabase()
  const db = createDb(database.pool)
  const clock = new ManualClock()
  const eventLog = new SteppedEventLog({ db })
  const log: Record<string, unknown>[] = []
  const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>)
  const logger = createLogger({ logLevel: 'warn' }, { write })
  const events = new Events()
  const failures = new FailureRecord({ clock, events }, { name: 'event log' })
  const reported: string[] = []
  events.on('service.failed', ({ error }) => reported.push((error as Error).message))
  const hub = new EventHub({ eventLog, clock, streamLimit: UNLIMITED, toEvent, logger, failures })
  const target = new EchoTarget()
  const scheduler = new Scheduler({ db, targets: new Map([[target.kind, target]]) })
  let streams = 0
  const turn = (): Promise<void> => new Promise(setImmediate)
  /** Resolves once every stream waits for its heartbeat and the poller sleeps. */
  const whenAsleep = async (): Promise<void> => {
    while (clock.waiting < streams + 1) await turn()
  }
  /** Runs one poll from beginning to end. */
  const poll = async (): Promise<void> => {
    await whenAsleep()
    clock.advance(POLL_MS)
    await whenAsleep()
    await turn()
  }
  return {
    eventLog,
    log,
    failures,
    /** The messages of the poll errors that were reported. */
    reported,
    advance: (ms: number) => clock.advance(ms),
    whenAsleep,
    /** Creates a schedule of this name. */
    create: async (name: string) => {
      await scheduler.create(INSTALLATION.caller, { ...DIGEST, name, target: { kind: 'echo' } })
    },
    stream: (lastEventId: string) =>
      hub.follow({ identity: INSTALLATION, lastEventId, isStillAllowed: async () => true }),
    /** Follows the events. Returns a function that polls until a name has arrived, and resolves with all names so far. */
    follow: async (lastEventId?: string): Promise<(until: string) => Promise<string[]>> => {
      const stream = await hub.follow({ identity: INSTALLATION, lastEventId, isStillAllowed: async () => true })
      streams += 1
      const names = namesIn(stream)
      return async (until) => {
        while (!names().includes(until)) await poll()
        return names()
      }
    },
    poll,
    whenRead: async (reads: number) => {
      while (eventLog.reads < reads) await turn()
    },
    async [Symbol.asyncDispose]() {
      hub.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** The names of the schedules in the events so far. */
function namesIn(stream: Readable): () => string[] {
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return () => [...text.matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)
}

test('the poller does not repeat events that a follower has read itself during the handover', async () => {
  await using world = await open()
  // Read 1 is the follower's own, read 2 is the poll that it waits for, and read 3 is its own again after that poll.
  world.eventLog.steps.set(3, async (read) => {
    await world.create('between')
    return read()
  })
  const told = await world.follow(await world.eventLog.tail())

  await world.poll()
  await world.whenRead(4)
  await world.poll()
  await world.create('last')

  expect(await told('last')).toEqual(['between', 'last'])
})

test('events that the poller finds during the handover are sent after the earlier ones', async () => {
  await using world = await open()
  const gate = Promise.withResolvers<void>()
  const hasRead = Promise.withResolvers<void>()
  world.eventLog.steps.set(3, async (read) => {
    await world.create('before')
    const page = await read()
    hasRead.resolve()
    await gate.promise
    return page
  })
  const other = await world.follow()
  const told = await world.follow(await world.eventLog.tail())

  await world.poll()
  await hasRead.promise
  await world.create('after')
  await other('after')
  gate.resolve()
  await world.create('last')

  expect(await told('last')).toEqual(['before', 'after', 'last'])
})

test('the poller does not repeat events that a follower has read before the poller', async () => {
  await using world = await open()
  const tail = await world.eventLog.tail()
  // Another stream follows already, so the poller sleeps from here on until the clock moves.
  const other = await world.follow()
  await world.create('early')
  await world.eventLog.readSome(INSTALLATION.caller, tail)

  const told = await world.follow(tail)
  // The follower reads twice, and finds nothing the second time.
  await world.whenRead(2)
  await world.poll()
  await world.create('last')

  expect(await told('last')).toEqual(['early', 'last'])
  expect(await other('last')).toEqual(['early', 'last'])
})

/** A page whose last entry cannot be converted into an event. */
function withPoison(page: EventLogPage): EventLogPage {
  const poison = { ...page.entries[0], schedule: {} } as EventLogPage['entries'][number]
  return { ...page, entries: [...page.entries, poison] }
}

test('failing polls are reported once, polling continues, and followers get each event once', async () => {
  await using world = await open()
  const told = await world.follow()
  await world.create('first')
  world.eventLog.steps.set(1, () => Promise.reject(new Error('the database is away')))
  world.eventLog.steps.set(2, async (read) => withPoison(await read()))

  await world.poll()
  await world.poll()
  expect(world.failures.failure).toMatchObject({ failures: 1, error: 'the database is away' })
  const names = await told('first')
  await world.create('last')

  expect(names).toEqual(['first'])
  expect(await told('last')).toEqual(['first', 'last'])
  expect(world.reported).toEqual(['the database is away'])
  expect(world.failures.failure).toBeUndefined()
})

test('polls that keep failing back off to five seconds, and are reported every half minute', async () => {
  await using world = await open()
  await world.follow()
  const polls = 20
  for (let poll = 1; poll <= polls; poll += 1) {
    world.eventLog.steps.set(poll, () => Promise.reject(new Error(`away ${poll}`)))
  }

  // The eleventh poll is at second 33: it is the first one at least half a minute after the first poll.
  for (const ms of [250, 250, 500, 1000, 2000, 4000, ...Array.from({ length: 6 }, () => 5000)]) {
    await world.whenAsleep()
    world.advance(ms)
  }
  await world.whenAsleep()

  const { reads } = world.eventLog
  world.advance(4999)
  await world.whenAsleep()
  expect(world.eventLog.reads).toBe(reads)
  expect(world.reported).toEqual(['away 1', 'away 11'])
  expect(world.failures.failure).toMatchObject({ failures: 2 })
})

test('a follower that cannot catch up is disconnected, and the log states the reason', async () => {
  await using world = await open()
  const tail = await world.eventLog.tail()
  await world.create('first')
  world.eventLog.steps.set(1, async (read) => withPoison(await read()))

  const stream = await world.stream(tail)
  await once(stream.resume(), 'close')

  expect(world.log).toMatchObject([{ event: 'event_log.stream_failed', error: { name: 'RangeError' } }])
})
