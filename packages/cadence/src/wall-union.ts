import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import type { Wall } from './wall.ts'

/** The members of two rules, in order. */
export class WallUnion implements WallRule {
  readonly #one: WallRule
  readonly #other: WallRule

  constructor(one: WallRule, other: WallRule) {
    this.#one = one
    this.#other = other
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    const one = this.#one.next(after, budget)
    const other = this.#other.next(after, budget)
    return one === null || other === null ? (one ?? other) : Math.min(one, other)
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    const one = this.#one.previous(before, budget)
    const other = this.#other.previous(before, budget)
    return one === null || other === null ? (one ?? other) : Math.max(one, other)
  }
}
