/** Time, as everything in core sees it. Tests bring their own, so that nothing ever waits for the wall. */
export interface Clock {
  /**
   * What statements take for now: null in production, where Postgres' own clock rules (I10). A test names an instant.
   */
  databaseNow(): Date | null
  /** Milliseconds that only ever grow; for durations, never for due-ness. */
  monotonicMs(): number
  /** Resolves after the time, or as soon as the signal fires; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** A breath, in which what is written together gathers. Nothing depends on how long it takes: a test's takes no time. */
  gather(): Promise<void>
  /** Calls back after the time, unless the returned function is called first. */
  after(ms: number, callback: () => void): () => void
}

// What setTimeout can hold; longer sleeps end early, and who sleeps looks again.
const TIMEOUT_MAX_MS = 2 ** 31 - 1
/** As long as some flushes to disk take: the statements that it spares cost more. */
const BREATH_MS = 10

export const systemClock: Clock = {
  databaseNow: () => null,
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve()
        return
      }
      const done = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(ms, TIMEOUT_MAX_MS))
      signal?.addEventListener('abort', done, { once: true })
    }),
  gather: () =>
    new Promise((resolve) => {
      setTimeout(resolve, BREATH_MS)
    }),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), TIMEOUT_MAX_MS))
    return () => clearTimeout(timer)
  },
}
