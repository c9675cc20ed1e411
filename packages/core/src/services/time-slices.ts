import type { Clock } from '../clock.ts'

/** For how long a computation may go on before the rest of the process gets its turn. */
const SLICE_MS = 10

/** Lets the rest of the process get on with its work every ten milliseconds of a long computation. */
export class TimeSlices {
  readonly #clock: Clock
  #endsMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call before each step. */
  async next(): Promise<void> {
    if (this.#clock.monotonicMs() < this.#endsMs) return
    await this.#clock.sleep(0)
    this.#endsMs = this.#clock.monotonicMs() + SLICE_MS
  }
}
