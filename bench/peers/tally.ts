import { nowMs } from '../clock.ts'
import type { Drain } from '../measure.ts'

/** Counts what happens to the slots of one drain, and notes when the first and the last of it happened. */
export class Tally {
  readonly #count: number
  readonly #complete = Promise.withResolvers<void>()
  #noted = 0
  #firstAt = Number.NaN
  #lastAt = Number.NaN

  constructor(count: number) {
    this.#count = count
  }

  /** Resolves once all were noted. */
  get complete(): Promise<void> {
    return this.#complete.promise
  }

  get firstAt(): number {
    return this.#firstAt
  }

  get lastAt(): number {
    return this.#lastAt
  }

  note(): void {
    this.#lastAt = nowMs()
    if (this.#noted === 0) this.#firstAt = this.#lastAt
    this.#noted += 1
    if (this.#noted === this.#count) this.#complete.resolve()
  }
}

export function drainOf(p: { count: number; dueAt: number; firstAt: number; lastAt: number }): Drain {
  return { count: p.count, seconds: (p.lastAt - p.dueAt) / 1000, firstMs: p.firstAt - p.dueAt }
}
