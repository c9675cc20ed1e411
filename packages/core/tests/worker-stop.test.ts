import { expect, test } from 'vitest'

import { systemClock, type Clock } from '../src/clock.ts'
import { Worker } from '../src/facade/worker.ts'
import { createDatabase } from './database.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { ScriptedTarget } from './scripted-target.ts'

/** The wall’s time, but timers fire only when the test says so. */
function clockOfTimers(): { clock: Clock; fire: (ms: number) => void } {
  const timers: { ms: number; callback: () => void }[] = []
  const clock: Clock = {
    ...systemClock,
    after: (ms, callback) => {
      timers.push({ ms, callback })
      return () => undefined
    },
  }
  return { clock, fire: (ms) => timers.filter((timer) => timer.ms === ms).forEach(({ callback }) => callback()) }
}

test('a worker whose database has gone silent stops within 25 s all the same', async () => {
  await using database = await createDatabase()
  await using proxy = await startFaultProxy(database.url)
  const { clock, fire } = clockOfTimers()
  const worker = new Worker({ databaseUrl: proxy.url, targets: [new ScriptedTarget()], clock })
  await worker.start()

  proxy.blackhole()
  const stopped = worker.stop()
  fire(24_500)

  await expect(stopped).resolves.toBeUndefined()
})
