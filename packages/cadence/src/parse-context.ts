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
}

/** What every kind's reader makes of a sound input, before the checks that all kinds share. */
export interface CadenceDraft {
  readonly spec: CadenceSpec
  readonly zone: Zone
  readonly dst: DstPolicy
  readonly source: SlotSource
  /** The local times behind the slots; null where slots are instants from the start. */
  readonly wallRule: WallRule | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** No two local times lie closer; Infinity for one that does not recur. */
  readonly closest: number
  /** Local times added one by one, which may lie closer to others. */
  readonly added: readonly number[]
  /** What it does, in English, without zone and bounds. Made when asked for: most cadences are never described. */
  readonly phrase: () => string
}
