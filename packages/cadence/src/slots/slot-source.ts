import type { StepBudget } from '../rules/step-budget.ts'
import { LAST_WALL_TIME } from '../time/wall-time.ts'

/** An ordered set of slots, finite or infinite. */
export interface SlotSource {
  /** The first slot strictly after `after`, or null. */
  next(after: number, budget: StepBudget): number | null
  /** The last slot strictly before `before`, or null. */
  previous(before: number, budget: StepBudget): number | null
}

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

/** Slots at a fixed distance of elapsed time: `start + n × every`. DST changes do not matter. */
export class ElapsedSource implements SlotSource {
  readonly #start: number
  readonly #everyMs: number

  constructor(start: number, everyMs: number) {
    this.#start = start
    this.#everyMs = everyMs
  }

  next(after: number): number | null {
    const index = Math.max(0, Math.floor((after - this.#start) / this.#everyMs) + 1)
    const slot = this.#start + index * this.#everyMs
    return slot > LAST_WALL_TIME ? null : slot
  }

  previous(before: number): number | null {
    const index = Math.ceil((before - this.#start) / this.#everyMs) - 1
    return index < 0 ? null : this.#start + index * this.#everyMs
  }
}

/** The slots of several sources without the instants that EXDATE removes. */
export class MergedSource implements SlotSource {
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
