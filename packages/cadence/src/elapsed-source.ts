import type { SlotSource } from './slot-source.ts'
import { LAST_WALL } from './wall.ts'

/** Slots at a fixed distance of elapsed time: `start + n × every`, whatever the clocks do. */
export class ElapsedSource implements SlotSource {
  readonly #start: number
  readonly #every: number

  constructor(start: number, every: number) {
    this.#start = start
    this.#every = every
  }

  next(after: number): number | null {
    const index = Math.max(0, Math.floor((after - this.#start) / this.#every) + 1)
    const slot = this.#start + index * this.#every
    return slot > LAST_WALL ? null : slot
  }

  previous(before: number): number | null {
    const index = Math.ceil((before - this.#start) / this.#every) - 1
    return index < 0 ? null : this.#start + index * this.#every
  }
}
