import type { CrashablePostgres } from './crashable-postgres.ts'
import type { FaultPlan } from './fault-plan.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { FaultSettings } from './settings.ts'
import type { WorkerFleet } from './worker-fleet.ts'
import type { Workload } from './workload.ts'

/** What a scenario breaks. */
export interface Rig {
  readonly postgres: CrashablePostgres
  readonly fleet: WorkerFleet
  readonly workload: Workload
  readonly random: SeededRandom
  readonly settings: FaultSettings
  /** Tells how far the scenario is. */
  readonly say: (text: string) => void
}

/** What a scenario did. */
export interface Inflicted {
  readonly faults: number
  /** Epoch milliseconds. */
  readonly lastFaultAt: number
  /** Why the scenario proves nothing; empty if it does. */
  readonly invalid: readonly string[]
  /** Statements and how often each was cut, if connections were. */
  readonly plan?: FaultPlan
}

export interface Scenario {
  readonly title: string
  readonly workers: number
  /** Made for scenarios that break connections: then workers reach Postgres through the proxy. */
  readonly planOf?: (random: SeededRandom) => FaultPlan
  readonly inflict: (rig: Rig, plan: FaultPlan) => Promise<Inflicted>
}
