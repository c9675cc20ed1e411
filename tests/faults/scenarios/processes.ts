import { setTimeout as sleep } from 'node:timers/promises'

import { FaultPlan } from '../fault-plan.ts'
import type { Scenario } from '../scenario.ts'

const KILL_EVERY_MS = 1000
const TRY_EVERY_MS = 50
const SAY_EVERY = 20
/** Some workers must stay alive to rescue the runs. So a machine that starts workers slowly gets fewer kills per second. */
const LEFT_ALIVE = 2
/** Longer than one kill per second takes, because a busy machine starts workers more slowly. */
const KILLS_LIMIT_MS = 900_000

export const kills: Scenario = {
  title: 'kill -9 of workers',
  workers: 5,
  async inflict({ fleet, settings, say }) {
    const limit = AbortSignal.timeout(KILLS_LIMIT_MS)
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

/** For how long Postgres is up between two crashes, and down after one. */
const UP_MS = { least: 1500, most: 6000 }
const DOWN_MS = { least: 0, most: 2000 }
/** Each crash comes within this time after the workload requested many runs. */
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

const MIX_EVERY_MS = 2500
const MIX_DOWN_MAX_MS = 1000
const MIX_GAP_MS = 800
const MIX_SILENCES_AT_A_TIME = 2
/** The time after which the short silences have ended. */
const MIX_LAST_SILENCE_MS = 10_000

export const mix: Scenario = {
  title: 'all faults at once',
  workers: 4,
  planOf: (random) =>
    new FaultPlan({
      moments: ['before', 'during', 'after', 'silence'],
      gapMs: MIX_GAP_MS,
      openMax: MIX_SILENCES_AT_A_TIME,
      random,
      now: Date.now,
    }),
  async inflict({ postgres, fleet, settings, random, say }, plan) {
    plan.aimAt('again')
    const end = AbortSignal.timeout(1000 * settings.mixSeconds)
    let others = 0
    while (!end.aborted) {
      await sleep(MIX_EVERY_MS)
      const choice = random.next()
      if (choice < 0.5) fleet.kill()
      else if (choice < 0.75) fleet.retire()
      else await postgres.crash(random.between(0, MIX_DOWN_MAX_MS))
      others += 1
      if (others % 4 === 0) say(`${plan.total} broken connections, ${others} kills, stops and crashes`)
    }
    plan.aimAt('nothing')
    const lastOtherAt = Date.now()
    await plan.untilOver(MIX_LAST_SILENCE_MS)
    return { faults: plan.total + others, lastFaultAt: Math.max(plan.lastAt, lastOtherAt), invalid: [] }
  },
}
