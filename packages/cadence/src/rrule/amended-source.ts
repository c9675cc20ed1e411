import type { SlotSource } from '../slot-source.ts'
import type { StepBudget } from '../step-budget.ts'

/** Several sources as one, without the slots that EXDATE names by their instants. */
export class AmendedSource implements SlotSource {
  readonly #sources: readonly SlotSource[]
  readonly #removed: ReadonlySet<number>

  constructor(sources: readonly SlotSource[], removed: ReadonlySet<number>) {
    this.#sources = sources
    this.#removed = removed
  }

  next(after: number, budget: StepBudget): number | null {
    let slot: number | null = after
    do {
      budget.spend()
      slot = this.#first(slot, budget)
    } while (slot !== null && this.#removed.has(slot))
    return slot
  }

  previous(before: number, budget: StepBudget): number | null {
    let slot: number | null = before
    do {
      budget.spend()
      slot = this.#last(slot, budget)
    } while (slot !== null && this.#removed.has(slot))
    return slot
  }

  #first(after: number, budget: StepBudget): number | null {
    const slots = this.#sources.map((source) => source.next(after, budget)).filter((slot) => slot !== null)
    return slots.length === 0 ? null : Math.min(...slots)
  }

  #last(before: number, budget: StepBudget): number | null {
    const slots = this.#sources.map((source) => source.previous(before, budget)).filter((slot) => slot !== null)
    return slots.length === 0 ? null : Math.max(...slots)
  }
}
