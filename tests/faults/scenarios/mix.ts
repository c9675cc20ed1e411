import { setTimeout as sleep } from 'node:timers/promises'

import { FaultPlan } from '../fault-plan.ts'
import type { Scenario } from '../scenario.ts'

const EVENT_EVERY_MS = 2500
const DOWN_MAX_MS = 1000
const GAP_MS = 800
const SILENCES_AT_A_TIME = 2
/** Until the short silences have ended. */
const LAST_SILENCE_MS = 10_000

export const mix: Scenario = {
  title: 'all faults at once',
  workers: 4,
  planOf: (random) =>
    new FaultPlan({
      moments: ['before', 'during', 'after', 'silence'],
      gapMs: GAP_MS,
      openMax: SILENCES_AT_A_TIME,
      random,
      now: Date.now,
    }),
  async inflict({ postgres, fleet, settings, random, say }, plan) {
    plan.aimAt('again')
    const end = AbortSignal.timeout(1000 * settings.mixSeconds)
    let others = 0
    while (!end.aborted) {
      await sleep(EVENT_EVERY_MS)
      const dice = random.next()
      if (dice < 0.5) fleet.kill()
      else if (dice < 0.75) fleet.retire()
      else await postgres.crash(random.between(0, DOWN_MAX_MS))
      others += 1
      if (others % 4 === 0) say(`${plan.total} broken connections, ${others} kills, stops and crashes`)
    }
    plan.aimAt('nothing')
    const lastOtherAt = Date.now()
    await plan.untilOver(LAST_SILENCE_MS)
    return { faults: plan.total + others, lastFaultAt: Math.max(plan.lastAt, lastOtherAt), invalid: [] }
  },
}
