import type { Clock } from '../src/kernel/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

/**
 * A clock that stands still until a test advances it. Statements use its instant as now, so no result depends on the real time
 * or on how long a test takes.
 */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>()
  readonly #startedAt: number
  #elapsedMs = 0

  /** @param instant as `Date` reads it */
  constructor(instant: string | number | Date) {
    this.#startedAt = new Date(instant).getTime()
    if (Number.isNaN(this.#startedAt)) throw new RangeError(`expected an instant, got ${String(instant)}`)
  }

  /** Epoch milliseconds. */
  get instant(): number {
    return this.#startedAt + this.#elapsedMs
  }

  /** The number of sleeps and callbacks that are not due yet. */
  get waiting(): number {
    return this.#timers.size
  }

  databaseNow(): Date {
    return new Date(this.instant)
  }

  monotonicMs(): number {
    return this.#elapsedMs
  }

  /**
   * Advances the clock and calls the callbacks that come due, in order. Each callback sees its own instant, and may set a timer
   * that also comes due. A sleeper continues once the test awaits something.
   */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`expected milliseconds to advance by, got ${ms}`)
    const untilMs = this.#elapsedMs + ms
    for (let timer = this.#nextDue(untilMs); timer !== undefined; timer = this.#nextDue(untilMs)) {
      this.#timers.delete(timer)
      this.#elapsedMs = Math.max(this.#elapsedMs, timer.dueMs)
      timer.callback()
    }
    this.#elapsedMs = untilMs
  }

  batchDelay(): Promise<void> {
    return Promise.resolve()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.after(ms, done)
      signal?.addEventListener('abort', done, { once: true })
    })
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { dueMs: this.#elapsedMs + Math.max(ms, 0), callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** The earliest timer; of two that are due at the same time, the one that was set first. */
  #nextDue(untilMs: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer
    }
    return next
  }
}
