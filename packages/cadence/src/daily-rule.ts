import type { DaySet } from './day-set.ts'
import { firstAbove, lastBelow } from './sorted-list.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import { DAY_MS, dayOf } from './wall.ts'
import type { Wall } from './wall.ts'

/** A set of days, and the same times on each of them. */
export class DailyRule implements WallRule {
  readonly #days: DaySet
  /** Milliseconds since midnight, ascending. */
  readonly #timesOfDay: readonly number[]

  constructor(days: DaySet, timesOfDay: readonly number[]) {
    this.#days = days
    this.#timesOfDay = timesOfDay
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    const [earliest] = this.#timesOfDay
    if (earliest === undefined) return null
    const today = dayOf(after)
    if (this.#days.has(today, budget)) {
      const time = firstAbove(this.#timesOfDay, after - today * DAY_MS)
      if (time !== undefined) return today * DAY_MS + time
    }
    const day = this.#days.firstFrom(today + 1, budget)
    return day === null ? null : day * DAY_MS + earliest
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    const latest = this.#timesOfDay.at(-1)
    if (latest === undefined) return null
    const today = dayOf(before)
    if (this.#days.has(today, budget)) {
      const time = lastBelow(this.#timesOfDay, before - today * DAY_MS)
      if (time !== undefined) return today * DAY_MS + time
    }
    const day = this.#days.lastUntil(today - 1, budget)
    return day === null ? null : day * DAY_MS + latest
  }
}
