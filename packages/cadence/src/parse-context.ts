import type { DstPolicy } from './dst-policy.ts'
import type { InputReader } from './input-reader.ts'
import type { ProblemList } from './problem.ts'
import type { SlotSource } from './slot-source.ts'
import type { CadenceSpec } from './spec.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import type { Zone } from './zone.ts'

/** What every kind's reader is given. */
export interface ParseContext {
  readonly reader: InputReader
  readonly problems: ProblemList
  readonly budget: StepBudget
  /** Epoch milliseconds that anchor what the input leaves open, or null. */
  readonly now: number | null
  /** The years of the zone that were paid for: see `chargeYear`. */
  readonly chargedYears: Set<number>
}

/** What every kind's reader makes of a sound input, before the checks that all kinds share. */
export interface CadenceDraft {
  readonly spec: CadenceSpec
  readonly zone: Zone
  readonly source: SlotSource
  /** The local times behind the slots and what a change of the clocks does to them; null where slots are instants. */
  readonly local: { readonly rule: WallRule; readonly dst: DstPolicy } | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** No two slots of the rule lie closer by its local times; Infinity for one that does not recur. */
  readonly closest: number
  /** Slots added one by one, ascending, which may lie closer to others. */
  readonly added?: readonly number[]
  /** Where `maxRuns` ends it, if arithmetic tells and nothing needs to be counted. */
  readonly last?: number
  /** What it does, in English, without zone and bounds. Made when asked for: most cadences are never described. */
  readonly phrase: () => string
}
