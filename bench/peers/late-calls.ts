import { nowMs, within } from '../clock.ts'
import type { Lateness } from '../measure.ts'
import { Tally } from './tally.ts'

const PATIENCE_MS = 60_000

/** Notes how late the slots of one measurement are called. */
export class LateCalls {
  readonly #late: number[] = []
  readonly #calls: Tally

  constructor(slots: number) {
    this.#calls = new Tally(slots)
  }

  /** To be told when a slot is called, with its nominal instant. */
  note(nominal: number): void {
    this.#late.push(nowMs() - nominal)
    this.#calls.note()
  }

  /**
   * All of them, once the last was called.
   * @param lastSlotAt after which they are waited for a while
   */
  async all(lastSlotAt: number): Promise<Lateness> {
    await within(this.#calls.complete, lastSlotAt + PATIENCE_MS)
    return this.#late
  }
}
