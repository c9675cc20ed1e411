import { setTimeout as sleep } from 'node:timers/promises'

import type { Scenario } from '../scenario.ts'

const KILL_EVERY_MS = 1000
const TRY_EVERY_MS = 50
const SAY_EVERY = 20
/** Somebody has to be there to rescue the runs: a machine that starts workers slowly gets fewer kills a second. */
const LEFT_ALIVE = 2
/** A kill a second takes 500 s. A busy machine starts workers more slowly than that. */
const LIMIT_MS = 900_000

export const kills: Scenario = {
  title: 'kill -9 of workers',
  workers: 5,
  async inflict({ fleet, settings, say }) {
    const limit = AbortSignal.timeout(LIMIT_MS)
    let lastFaultAt = Date.now()
    let count = 0
    while (count < settings.kills && !limit.aborted) {
      await sleep(Math.max(TRY_EVERY_MS, lastFaultAt + KILL_EVERY_MS - Date.now()))
      if (fleet.started <= LEFT_ALIVE || !fleet.kill()) continue
      count += 1
      lastFaultAt = Date.now()
      if (count % SAY_EVERY === 0) say(`${count} of ${settings.kills} kills, ${fleet.started} workers have started`)
    }
    const invalid = count < settings.kills ? [`only ${count} kills of ${settings.kills}: workers start too slowly`] : []
    return { faults: count, lastFaultAt, invalid }
  },
}
