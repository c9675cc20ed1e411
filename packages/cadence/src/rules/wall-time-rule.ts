import { DAY_MS, dayOf } from '../time/wall-time.ts'
import type { DayNumber, WallTime } from '../time/wall-time.ts'
import { firstAbove, lastBelow } from './sorted-list.ts'
import type { StepBudget } from './step-budget.ts'

/** An ordered set of wall times, finite or infinite. It knows no zone. */
export interface WallTimeRule {
  /** The first member strictly after `after`, or null. */
  next(after: WallTime, budget: StepBudget): WallTime | null
  /** The last member strictly before `before`, or null. */
  previous(before: WallTime, budget: StepBudget): WallTime | null
}

/** A finite list of wall times, ascending. */
export class WallTimeList implements WallTimeRule {
  readonly #walls: readonly WallTime[]

  constructor(walls: readonly WallTime[]) {
    this.#walls = walls
  }

  next(after: WallTime): WallTime | null {
    return firstAbove(this.#walls, after) ?? null
  }

  previous(before: WallTime): WallTime | null {
    return lastBelow(this.#walls, before) ?? null
  }
}

/** The wall times that at least one of two rules has. */
export class WallTimeUnion implements WallTimeRule {
  readonly #one: WallTimeRule
  readonly #other: WallTimeRule

  constructor(one: WallTimeRule, other: WallTimeRule) {
    this.#one = one
    this.#other = other
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    const one = this.#one.next(after, budget)
    const other = this.#other.next(after, budget)
    return one === null || other === null ? (one ?? other) : Math.min(one, other)
  }

  previous(before: WallTime, budget: StepBudget): WallTime | null {
    const one = this.#one.previous(before, budget)
    const other = this.#other.previous(before, budget)
    return one === null || other === null ? (one ?? other) : Math.max(one, other)
  }
}

/** Another rule, restricted to its occurrences from `first` to `last`, both included. */
export class BoundedRule implements WallTimeRule {
  readonly #rule: WallTimeRule
  readonly #first: WallTime
  readonly #last: WallTime

  constructor(rule: WallTimeRule, first: WallTime, last: WallTime) {
    this.#rule = rule
    this.#first = first
    this.#last = last
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    if (after >= this.#last) return null
    const wall = this.#rule.next(Math.max(after, this.#first - 1), budget)
    return wall === null || wall > this.#last ? null : wall
  }

  previous(before: WallTime, budget: StepBudget): WallTime | null {
    if (before <= this.#first) return null
    const wall = this.#rule.previous(Math.min(before, this.#last + 1), budget)
    return wall === null || wall < this.#first ? null : wall
  }
}

/** A rule without the wall times and the whole days that EXDATE removes. */
export class ExcludingRule implements WallTimeRule {
  readonly #rule: WallTimeRule
  readonly #walls: ReadonlySet<WallTime>
  readonly #days: ReadonlySet<DayNumber>

  constructor(rule: WallTimeRule, walls: ReadonlySet<WallTime>, days: ReadonlySet<DayNumber>) {
    this.#rule = rule
    this.#walls = walls
    this.#days = days
  }

  next(after: WallTime, budget: StepBudget): WallTime | null {
    let from = after
    for (;;) {
      budget.spend()
      const wall = this.#rule.next(from, budget)
      if (wall === null) return null
      // Skips an excluded day in one step: the rule may have a wall time in each of its 1,440 minutes.
      if (this.#days.has(dayOf(wall))) from = (dayOf(wall) + 1) * DAY_MS - 1
      else if (this.#walls.has(wall)) from = wall
      else return wall
    }
  }

  previous(before: WallTime, budget: StepBudget): WallTime | null {
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
