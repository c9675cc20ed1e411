import { createPool, migrateDown, systemClock, type Clock } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { Readiness } from '../src/readiness.ts'

/** A clock that a test moves. */
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
  const readiness = new Readiness({ pool: createPoolOf(database.url), clock })
  return { database, readiness, advance, timers }
}

function createPoolOf(url: string) {
  const pool = createPool({ connectionString: url })
  onTestFinished(() => pool.end())
  return pool
}

test('it is ready once it has started, and not any more once it stops', async () => {
  const { readiness } = await setup()

  expect(await readiness.problems()).toEqual(['This process is starting.'])
  readiness.started()
  expect(await readiness.problems()).toEqual([])
  readiness.stopping()
  expect(await readiness.problems()).toEqual(['This process is stopping.'])
  readiness.started()
  expect(await readiness.problems()).toEqual(['This process is stopping.'])
})

test('a schema that falls behind is seen within a second, and the database is not asked more often', async () => {
  const { database, readiness, advance, timers } = await setup()
  readiness.started()
  expect(await readiness.problems()).toEqual([])
  await migrateDown(database.pool, { to: 1 })

  advance(999)
  expect(await readiness.problems()).toEqual([])
  advance(1)
  expect(await readiness.problems()).toEqual([
    expect.stringMatching(/^The database lacks 0002_.*: run `carillon migrate up`\.$/),
  ])
  expect(timers.size).toBe(0)
})

test('a database that is gone is told in the words of the driver', async () => {
  const { clock } = createClock()
  const readiness = new Readiness({ pool: createPoolOf('postgres://nobody@127.0.0.1:1/nothing'), clock })
  readiness.started()

  expect(await readiness.problems()).toEqual(['The database cannot be used: connect ECONNREFUSED 127.0.0.1:1.'])
})

test('a database that says nothing is given two seconds', async () => {
  const { database, readiness, advance } = await setup()
  readiness.started()
  const client = await database.pool.connect()
  await client.query('begin; lock table carillon.migrations in access exclusive mode')

  const problems = readiness.problems()
  advance(2000)

  expect(await problems).toEqual(['The database does not answer in time.'])
  await client.query('rollback')
  client.release()
})
