import type { StepBudget } from '../rules/step-budget.ts'
import { dateOf, dayOf } from '../time/wall-time.ts'
import { STEPS_PER_ZONE_YEAR } from '../time/zone.ts'
import type { InputReader } from './input-reader.ts'
import type { ProblemList } from './problem.ts'

/** What `parse` passes to the reader of a kind, such as `parseCronCadence`. */
export interface ParseContext {
  readonly reader: InputReader
  readonly problems: ProblemList
  readonly budget: StepBudget
  /** Epoch milliseconds. An input that names no start counts its slots from here. Null if the caller of `parse` gave no `now`. */
  readonly now: number | null
  /** The zone years already charged to the budget: see `chargeYear`. */
  readonly chargedYears: Set<number>
}

/** Charges the budget for the zone year around an instant, once per input: a hostile list may name thousands of years. */
export function chargeYear({ budget, chargedYears }: ParseContext, instant: number): void {
  const { year } = dateOf(dayOf(instant))
  if (!chargedYears.has(year)) budget.spend(STEPS_PER_ZONE_YEAR)
  chargedYears.add(year)
}
