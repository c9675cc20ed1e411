import type { Clock } from '@carillon/core'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

/** Timers fire only when a test advances the clock. Statements use the time of Postgres. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>()
  #elapsedMs = 0

  databaseNow(): null {
    return null
  }

  monotonicMs(): number {
    return this.#elapsedMs
  }

  /** How many timers are waiting. */
  get waiting(): number {
    return this.#timers.size
  }

  advance(ms: number): void {
    this.#elapsedMs += ms
    for (const timer of [...this.#timers].toSorted((a, b) => a.dueMs - b.dueMs)) {
      if (timer.dueMs <= this.#elapsedMs && this.#timers.delete(timer)) timer.callback()
    }
  }

  batchDelay(): Promise<void> {
    return Promise.resolve()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.after(ms, resolve)
      signal?.addEventListener(
        'abort',
        () => {
          cancel()
          resolve()
        },
        { once: true },
      )
    })
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { dueMs: this.#elapsedMs + ms, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }
}
