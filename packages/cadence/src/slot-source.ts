import type { StepBudget } from './step-budget.ts'

/** An ordered set of instants, finite or not. */
export interface SlotSource {
  /** The first slot strictly after, or null. */
  next(after: number, budget: StepBudget): number | null
  /** The last slot strictly before, or null. */
  previous(before: number, budget: StepBudget): number | null
}
