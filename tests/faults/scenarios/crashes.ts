import { setTimeout as sleep } from 'node:timers/promises'

import type { Scenario } from '../scenario.ts'

/** How long Postgres is up between two crashes, and down after one. */
const UP_MS = { least: 1500, most: 6000 }
const DOWN_MS = { least: 0, most: 2000 }
/** Each crash comes within this time after many runs were asked for. */
const RUSH_MS = 300

export const crashes: Scenario = {
  title: 'crashes of Postgres',
  workers: 3,
  async inflict({ postgres, workload, settings, random, say }) {
    for (let crash = 1; crash <= settings.crashes; crash += 1) {
      await sleep(random.between(UP_MS.least, UP_MS.most))
      const rushed = workload.rush()
      await sleep(random.between(0, RUSH_MS))
      const start = performance.now()
      await postgres.crash(random.between(DOWN_MS.least, DOWN_MS.most))
      say(`crash ${crash} of ${settings.crashes}: Postgres was back after ${Math.round(performance.now() - start)} ms`)
      await rushed
    }
    return { faults: settings.crashes, lastFaultAt: Date.now(), invalid: [] }
  },
}
