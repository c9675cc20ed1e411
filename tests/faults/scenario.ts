import type { CrashablePostgres } from './crashable-postgres.ts'
import type { FaultPlan } from './fault-plan.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { WorkerFleet } from './worker-fleet.ts'
import type { Workload } from './workload.ts'

/** How many faults of each kind a run causes. Environment variables override the defaults, which make a full run. */
export interface FaultSettings {
  readonly seed: number
  readonly cuts: number
  readonly crashes: number
  readonly kills: number
  readonly silences: number
  /** How long the mix of all faults lasts. */
  readonly mixSeconds: number
  /** How long a scenario searches for statements that it has not cut yet. */
  readonly searchSeconds: number
}

export function readSettings(environment: NodeJS.ProcessEnv): FaultSettings {
  const numberOf = (name: string, fallback: number): number => {
    const text = environment[name]
    if (text === undefined || text === '') return fallback
    const number = Number(text)
    if (!Number.isSafeInteger(number) || number < 0) {
      throw new RangeError(`${name}: expected a whole number, got ${text}`)
    }
    return number
  }
  return {
    seed: numberOf('FAULT_SEED', Math.floor(Math.random() * 1_000_000)),
    cuts: numberOf('FAULT_CUTS', 300),
    crashes: numberOf('FAULT_CRASHES', 30),
    kills: numberOf('FAULT_KILLS', 500),
    silences: numberOf('FAULT_SILENCES', 60),
    mixSeconds: numberOf('FAULT_MIX_SECONDS', 60),
    searchSeconds: numberOf('FAULT_SEARCH_SECONDS', 300),
  }
}

/** The processes that a scenario can break. */
export interface Rig {
  readonly postgres: CrashablePostgres
  readonly fleet: WorkerFleet
  readonly workload: Workload
  readonly random: SeededRandom
  readonly settings: FaultSettings
  /** Prints progress. */
  readonly say: (text: string) => void
}

/** The faults that a scenario has caused. */
export interface Inflicted {
  readonly faults: number
  /** Epoch milliseconds. */
  readonly lastFaultAt: number
  /** The reasons why the scenario proves nothing. Empty if it does prove something. */
  readonly invalid: readonly string[]
  /** How often each statement was cut, for scenarios that break connections. */
  readonly plan?: FaultPlan
}

export interface Scenario {
  readonly title: string
  readonly workers: number
  /** Set for scenarios that break connections. Workers then reach Postgres through the proxy. */
  readonly planOf?: (random: SeededRandom) => FaultPlan
  readonly inflict: (rig: Rig, plan: FaultPlan) => Promise<Inflicted>
}
