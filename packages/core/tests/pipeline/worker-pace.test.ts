import { expect, test } from 'vitest'

import { systemClock, type Clock } from '../../src/kernel/clock.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { ScriptedTarget } from '../scripted-target.ts'

/** Neither this nor half of it is the period of another service. */
const HEARTBEAT_MS = 7000

/** The system clock, with promises for the sleeps that were requested. */
function watchedClock(): { clock: Clock; whenSlept: (ms: number) => Promise<void> } {
  const sleeps = new Map<number, PromiseWithResolvers<void>>()
  const sleepOf = (ms: number): PromiseWithResolvers<void> => {
    const sleep = sleeps.get(ms) ?? Promise.withResolvers<void>()
    sleeps.set(ms, sleep)
    return sleep
  }
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      sleepOf(ms).resolve()
      return systemClock.sleep(ms, signal)
    },
  }
  return { clock, whenSlept: (ms) => sleepOf(ms).promise }
}

test('a lease lasts three heartbeats, and a worker looks for orphaned runs twice per heartbeat (I12)', async () => {
  await using database = await createDatabase()
  const { clock, whenSlept } = watchedClock()
  await using worker = new Worker({
    databaseUrl: database.url,
    targets: [new ScriptedTarget()],
    heartbeatMs: HEARTBEAT_MS,
    clock,
  })

  await worker.start()

  await Promise.all([whenSlept(HEARTBEAT_MS), whenSlept(HEARTBEAT_MS / 2)])
  const { rows } = await database.pool.query(
    `select extract(epoch from lease_expires_at - heartbeat_at)::float * 1000 as "leaseMs" from carillon.workers`,
  )
  expect(rows).toEqual([{ leaseMs: 3 * HEARTBEAT_MS }])
})
