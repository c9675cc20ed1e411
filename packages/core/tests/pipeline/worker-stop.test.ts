import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { systemClock, type Clock } from '../../src/kernel/clock.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { CALLER, EVERY_MINUTE } from '../pipeline.ts'
import { ScriptedTarget } from '../scripted-target.ts'

/** The system clock, except that timers fire only when the test fires them. */
function clockWithManualTimers(): { clock: Clock; fire: (ms: number) => void } {
  const timers: { ms: number; callback: () => void }[] = []
  const clock: Clock = {
    ...systemClock,
    after: (ms, callback) => {
      timers.push({ ms, callback })
      return () => undefined
    },
  }
  const fire = (ms: number): void => {
    const due = timers.filter((timer) => timer.ms === ms)
    if (due.length === 0) throw new Error(`expected a timer of ${ms} ms, got none`)
    for (const { callback } of due) callback()
  }
  return { clock, fire }
}

test('a worker whose database no longer answers stops within 25 s', async () => {
  await using database = await createDatabase()
  await using proxy = await startFaultProxy(database.url)
  const { clock, fire } = clockWithManualTimers()
  const worker = new Worker({ databaseUrl: proxy.url, targets: [new ScriptedTarget()], clock })
  await worker.start()

  proxy.blackhole()
  const stopped = worker.stop()
  fire(24_500)

  await expect(stopped).resolves.toBeUndefined()
})

test('a worker that stops lets an attempt run for 20 s and then hands it back uncharged', async () => {
  await using database = await createDatabase()
  const { clock, fire } = clockWithManualTimers()
  const target = new ScriptedTarget()
  target.script = () => new Promise(() => undefined)
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[target.kind, target]]) })
  const worker = new Worker({ databaseUrl: database.url, targets: [target], clock })
  await worker.start()
  const cadence = { kind: 'once', at: '2099-01-01T00:00:00Z' }
  const { id } = await scheduler.runNow(CALLER, (await scheduler.create(CALLER, { ...EVERY_MINUTE, cadence })).id)
  await target.whenCalled(1)

  const stopped = worker.stop()
  fire(20_000)
  await stopped

  expect(await scheduler.getRun(CALLER, id)).toMatchObject({
    state: 'pending',
    waitsFor: 'worker',
    attemptCount: 0,
    attempts: [],
  })
  expect((await database.pool.query('select from carillon.workers')).rows).toEqual([])
})
