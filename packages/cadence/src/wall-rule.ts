import type { StepBudget } from './step-budget.ts'
import type { Wall } from './wall.ts'

/** An ordered set of wall times, finite or not. */
export interface WallRule {
  /** The first member strictly after, or null. */
  next(after: Wall, budget: StepBudget): Wall | null
  /** The last member strictly before, or null. */
  previous(before: Wall, budget: StepBudget): Wall | null
}
