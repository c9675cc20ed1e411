import type { StepBudget } from '../step-budget.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, dayOf } from '../wall.ts'
import type { DayNumber, Wall } from '../wall.ts'

/** A rule without the local times, and without the days, that EXDATE names. */
export class ExcludedRule implements WallRule {
  readonly #rule: WallRule
  readonly #walls: ReadonlySet<Wall>
  readonly #days: ReadonlySet<DayNumber>

  constructor(rule: WallRule, walls: ReadonlySet<Wall>, days: ReadonlySet<DayNumber>) {
    this.#rule = rule
    this.#walls = walls
    this.#days = days
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    let from = after
    for (;;) {
      budget.spend()
      const wall = this.#rule.next(from, budget)
      if (wall === null) return null
      // A whole day is left in one step: it may hold 1,440 slots.
      if (this.#days.has(dayOf(wall))) from = (dayOf(wall) + 1) * DAY_MS - 1
      else if (this.#walls.has(wall)) from = wall
      else return wall
    }
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    let until = before
    for (;;) {
      budget.spend()
      const wall = this.#rule.previous(until, budget)
      if (wall === null) return null
      if (this.#days.has(dayOf(wall))) until = dayOf(wall) * DAY_MS
      else if (this.#walls.has(wall)) until = wall
      else return wall
    }
  }
}
