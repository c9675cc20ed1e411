import type { Clock } from './clock.ts'

/** How long a computation runs before it lets the process handle timers and I/O. */
const RUN_MS = 10

/** Yields to the event loop every ten milliseconds of a long computation, so that it does not block the process (I14). */
export class EventLoopYield {
  readonly #clock: Clock
  #endsMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Call before each step of the computation. */
  async next(): Promise<void> {
    if (this.#clock.monotonicMs() < this.#endsMs) return
    await this.#clock.sleep(0)
    this.#endsMs = this.#clock.monotonicMs() + RUN_MS
  }
}
