import type { SlotSource } from './slot-source.ts'
import type { StepBudget } from './step-budget.ts'

/** The slots of a source up to an instant, inclusive. */
export class BoundedSource implements SlotSource {
  readonly #source: SlotSource
  readonly #last: number

  constructor(source: SlotSource, last: number) {
    this.#source = source
    this.#last = last
  }

  next(after: number, budget: StepBudget): number | null {
    if (after >= this.#last) return null
    const slot = this.#source.next(after, budget)
    return slot === null || slot > this.#last ? null : slot
  }

  previous(before: number, budget: StepBudget): number | null {
    return this.#source.previous(Math.min(before, this.#last + 1), budget)
  }
}
