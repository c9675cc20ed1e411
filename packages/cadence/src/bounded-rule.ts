import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import type { Wall } from './wall.ts'

/** The members of a rule from `first` to `last`, both inclusive. */
export class BoundedRule implements WallRule {
  readonly #rule: WallRule
  readonly #first: Wall
  readonly #last: Wall

  constructor(rule: WallRule, first: Wall, last: Wall) {
    this.#rule = rule
    this.#first = first
    this.#last = last
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    if (after >= this.#last) return null
    const wall = this.#rule.next(Math.max(after, this.#first - 1), budget)
    return wall === null || wall > this.#last ? null : wall
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    if (before <= this.#first) return null
    const wall = this.#rule.previous(Math.min(before, this.#last + 1), budget)
    return wall === null || wall < this.#first ? null : wall
  }
}
