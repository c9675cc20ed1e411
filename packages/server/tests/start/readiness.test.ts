import { createPool, migrate, migrateDown, systemClock, type Clock } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { createLogger } from '../../src/start/log.ts'
import { Readiness } from '../../src/start/readiness.ts'

const UNUSABLE = 'the database cannot be used'
const OTHER_SCHEMA = 'the database schema does not match this version: run `carillon migrate up`'

/** A clock that moves only when a test moves it. */
function createClock() {
  let now = 0
  const timers = new Set<{ at: number; callback: () => void }>()
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => now,
    after: (ms, callback) => {
      const timer = { at: now + ms, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  const advance = (ms: number): void => {
    now += ms
    for (const timer of timers) if (timer.at <= now) timer.callback()
  }
  return { clock, advance, timers }
}

async function setup() {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { clock, advance, timers } = createClock()
  const { logger, log } = createLog()
  const readiness = new Readiness({ pool: createPoolOf(database.url), clock, logger })
  return { database, readiness, clock, logger, advance, timers, log }
}

function createLog() {
  const log: unknown[] = []
  const logger = createLogger({ logLevel: 'info' }, { write: (line) => void log.push(JSON.parse(line)) })
  return { logger, log }
}

function createPoolOf(url: string) {
  const pool = createPool({ connectionString: url })
  onTestFinished(() => pool.end())
  return pool
}

test('a service is ready once it has started, and no longer ready once it stops', async () => {
  const { readiness } = await setup()

  expect(await readiness.problems()).toEqual(['the worker has not started'])
  readiness.started()
  expect(await readiness.problems()).toEqual([])
  readiness.stopping()
  expect(await readiness.problems()).toEqual(['this process is stopping'])
  readiness.started()
  expect(await readiness.problems()).toEqual(['this process is stopping'])
})

test('a service is not ready while the embedded Postgres restarts, whatever the last check found', async () => {
  const { database, clock, logger, log } = await setup()
  let isDown = false
  const pool = createPoolOf(database.url)
  const readiness = new Readiness({ pool, clock, logger, isPostgresDown: () => isDown })
  readiness.started()

  const before = await readiness.problems()
  isDown = true
  const meanwhile = await readiness.problems()
  isDown = false
  const after = await readiness.problems()

  expect([before, meanwhile, after]).toEqual([[], ['the embedded Postgres stopped and is being restarted'], []])
  expect(log).toEqual([])
})

test('a schema that falls behind is noticed within a second, and the database is checked at most once a second', async () => {
  const { database, readiness, advance, timers } = await setup()
  readiness.started()
  expect(await readiness.problems()).toEqual([])
  await migrateDown(database.pool, { to: 1 })

  advance(999)
  expect(await readiness.problems()).toEqual([])
  advance(1)
  expect(await readiness.problems()).toEqual([OTHER_SCHEMA])
  expect(timers.size).toBe(0)
})

test('the error of the driver goes to the log only, and the probe states that the database cannot be used', async () => {
  const { clock } = createClock()
  const { logger, log } = createLog()
  const readiness = new Readiness({ pool: createPoolOf('postgres://nobody@127.0.0.1:1/nothing'), clock, logger })
  readiness.started()

  expect(await readiness.problems()).toEqual([UNUSABLE])
  expect(log).toMatchObject([
    {
      level: 'warn',
      event: 'service.not_ready',
      problem: UNUSABLE,
      error: { code: 'ECONNREFUSED', message: expect.stringContaining('127.0.0.1:1') as unknown },
    },
  ])
})

test('a schema that is too new makes the service not ready, and the log names the difference', async () => {
  const { database, readiness, log } = await setup()
  readiness.started()
  await database.pool.query(
    `insert into carillon.migrations (number, name, checksum, applied_at)
     select max(number) + 1, 'from_the_future', 'x', now() from carillon.migrations`,
  )

  expect(await readiness.problems()).toEqual([OTHER_SCHEMA])
  expect(log).toMatchObject([
    { level: 'warn', error: { message: expect.stringContaining('from_the_future') as unknown } },
  ])
})

test('every change of readiness is logged once, however many probes arrive', async () => {
  const { database, readiness, advance, log } = await setup()
  readiness.started()
  const askTwice = async (): Promise<void> => {
    for (let times = 0; times < 2; times += 1) {
      advance(1000)
      await readiness.problems()
    }
  }

  await askTwice()
  await migrateDown(database.pool, { to: 1 })
  await askTwice()
  await migrate(database.pool)
  await askTwice()

  expect(log).toMatchObject([
    {
      level: 'warn',
      event: 'service.not_ready',
      error: { message: expect.stringMatching(/^the database lacks 0002_/) as unknown },
    },
    { level: 'info', event: 'service.ready' },
  ])
})

test('a database that does not answer within two seconds makes the service not ready', async () => {
  const { database, readiness, advance, log } = await setup()
  readiness.started()
  const client = await database.pool.connect()
  await client.query('begin; lock table carillon.migrations in access exclusive mode')

  const problems = readiness.problems()
  advance(2000)

  expect(await problems).toEqual([UNUSABLE])
  expect(log).toMatchObject([{ error: { message: 'the database did not answer within 2000 ms' } }])
  await client.query('rollback')
  client.release()
})
