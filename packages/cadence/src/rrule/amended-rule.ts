import type { StepBudget } from '../step-budget.ts'
import { WallList } from '../wall-list.ts'
import type { WallRule } from '../wall-rule.ts'
import { DAY_MS, dayOf } from '../wall.ts'
import type { DayNumber, Wall } from '../wall.ts'

export interface Amendments {
  /** RDATE, ascending. */
  readonly added: readonly Wall[]
  /** EXDATE with a time. */
  readonly removed: ReadonlySet<Wall>
  /** EXDATE that is a date: nothing happens all day. */
  readonly removedDays: ReadonlySet<DayNumber>
}

/** A rule with dates added (RDATE), then taken out (EXDATE), in this order as RFC 5545 says. */
export class AmendedRule implements WallRule {
  readonly #rule: WallRule
  readonly #added: WallList
  readonly #amendments: Amendments

  constructor(rule: WallRule, amendments: Amendments) {
    this.#rule = rule
    this.#added = new WallList(amendments.added)
    this.#amendments = amendments
  }

  next(after: Wall, budget: StepBudget): Wall | null {
    let from = after
    for (;;) {
      budget.spend()
      const wall = smaller(this.#rule.next(from, budget), this.#added.next(from))
      if (wall === null) return null
      // A whole day is left in one step: it may hold 1,440 slots.
      if (this.#amendments.removedDays.has(dayOf(wall))) from = (dayOf(wall) + 1) * DAY_MS - 1
      else if (this.#amendments.removed.has(wall)) from = wall
      else return wall
    }
  }

  previous(before: Wall, budget: StepBudget): Wall | null {
    let until = before
    for (;;) {
      budget.spend()
      const wall = larger(this.#rule.previous(until, budget), this.#added.previous(until))
      if (wall === null) return null
      if (this.#amendments.removedDays.has(dayOf(wall))) until = dayOf(wall) * DAY_MS
      else if (this.#amendments.removed.has(wall)) until = wall
      else return wall
    }
  }
}

function smaller(a: Wall | null, b: Wall | null): Wall | null {
  if (a === null) return b
  return b === null ? a : Math.min(a, b)
}

function larger(a: Wall | null, b: Wall | null): Wall | null {
  if (a === null) return b
  return b === null ? a : Math.max(a, b)
}
