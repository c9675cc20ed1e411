import { nowMs, within } from '../clock.ts'
import type { Drain, Lateness } from '../measure.ts'

/** How many milliseconds a peer may take after the last slot. */
const PATIENCE_MS = 60_000

/** Counts the slots of one drain, and records when the first and the last one happened. */
export class Tally {
  readonly #count: number
  readonly #complete = Promise.withResolvers<void>()
  #noted = 0
  #firstAt = Number.NaN
  #lastAt = Number.NaN

  constructor(count: number) {
    this.#count = count
  }

  /** Resolves once all slots have been counted. */
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

/** Records how late the slots of one measurement are called. */
export class LateCalls {
  readonly #late: number[] = []
  readonly #calls: Tally

  constructor(slots: number) {
    this.#calls = new Tally(slots)
  }

  /** Records a call of a slot. Must be called at once. */
  note(nominal: number): void {
    this.#late.push(nowMs() - nominal)
    this.#calls.note()
  }

  /**
   * Resolves with all values once the last slot was called.
   * @param lastSlotAt the start of the time limit
   */
  async all(lastSlotAt: number): Promise<Lateness> {
    await within(this.#calls.complete, lastSlotAt + PATIENCE_MS)
    return this.#late
  }
}
