import { setTimeout as sleep } from 'node:timers/promises'

import { CUT_MOMENTS, FaultPlan } from '../fault-plan.ts'
import { provoke } from '../provoke.ts'
import type { Inflicted, Rig, Scenario } from '../scenario.ts'

const WARM_UP_STEPS = 4
const WARM_UP_STEP_MS = 5000
const LOOK_EVERY_MS = 500
/** How often progress is printed and `provoke` is called, counted in looks. */
const SAY_EVERY = 20
const PROVOKE_EVERY = 6
/** The share of the wanted faults that must happen after every statement was cut at every moment. */
const AGAIN_SHARE = 0.3
const AGAIN_LIMIT_MS = 90_000
const ROUNDS_MAX = 3
const CUT_GAP_MS = 300
const SILENCE_GAP_MS = 800
const SILENCES_AT_A_TIME = 6
/** The time after which the short silences have ended. */
const LAST_SILENCE_MS = 10_000

export const cuts: Scenario = {
  title: 'connections cut before, during and after statements',
  workers: 3,
  planOf: (random) =>
    new FaultPlan({ moments: CUT_MOMENTS, gapMs: CUT_GAP_MS, openMax: Infinity, random, now: Date.now }),
  inflict: breakConnections,
}

export const silences: Scenario = {
  title: 'answers dropped, connections half-open',
  workers: 4,
  planOf: (random) =>
    new FaultPlan({
      moments: ['silence'],
      gapMs: SILENCE_GAP_MS,
      openMax: SILENCES_AT_A_TIME,
      random,
      now: Date.now,
    }),
  inflict: breakConnections,
}

/** Learns which statements workers send from start to stop, then breaks connections until each statement was cut at each moment. */
async function breakConnections(rig: Rig, plan: FaultPlan): Promise<Inflicted> {
  const { settings, say } = rig
  const wanted = plan.moments.includes('silence') ? settings.silences : settings.cuts
  await warmUp(rig, plan)
  say(`the warm-up saw ${plan.rows.length} statements`)
  // A rare statement may reach the required count late in a round. In that case there is one more round.
  for (let round = 1; round === 1 || (plan.missing.length > 0 && round <= ROUNDS_MAX); round += 1) {
    await breakEach(rig, plan)
    await breakAgain(rig, plan, Math.max(wanted, plan.total + Math.ceil(AGAIN_SHARE * wanted)))
  }
  plan.aimAt('nothing')
  await plan.untilOver(LAST_SILENCE_MS)
  const tooFew = plan.total < wanted ? [`only ${plan.total} faults of ${wanted}`] : []
  const never = plan.missing.map((cell) => `never cut: ${cell}`)
  return { faults: plan.total, lastFaultAt: plan.lastAt, invalid: [...tooFew, ...never], plan }
}

async function warmUp(rig: Rig, plan: FaultPlan): Promise<void> {
  plan.forget()
  for (let step = 0; step < WARM_UP_STEPS; step += 1) {
    await provoke(rig, step)
    await sleep(WARM_UP_STEP_MS)
  }
}

/** Cuts every statement at every moment once. */
async function breakEach(rig: Rig, plan: FaultPlan): Promise<void> {
  const limit = AbortSignal.timeout(1000 * rig.settings.searchSeconds)
  plan.aimAt('each')
  for (let turn = 0; plan.missing.length > 0 && !limit.aborted; turn += 1) {
    if (turn % PROVOKE_EVERY === 0) await provoke(rig, turn / PROVOKE_EVERY)
    if (turn % SAY_EVERY === 0) {
      rig.say(`${plan.total} faults, ${plan.missing.length} of ${plan.rows.length * plan.moments.length} cells missing`)
    }
    await sleep(LOOK_EVERY_MS)
  }
}

/** Causes more faults while no worker is started or stopped, because a restart would repair the damage in a living worker. */
async function breakAgain({ say, workload }: Rig, plan: FaultPlan, wanted: number): Promise<void> {
  plan.aimAt('again')
  say(`${plan.missing.length} cells are missing; ${wanted - plan.total} more faults while the workers live on`)
  const limit = AbortSignal.timeout(AGAIN_LIMIT_MS)
  while (plan.total < wanted && !limit.aborted) {
    await workload.rush()
    await sleep(LOOK_EVERY_MS)
  }
}
