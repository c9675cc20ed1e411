/** Calls back after `ms` unless the returned function is called first. The timer does not keep the process alive. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms)
  timer.unref()
  return () => {
    clearTimeout(timer)
  }
}

/** Resolves after `ms`, or as soon as the signal aborts. Never rejects. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve()
      return
    }
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Monotonic milliseconds, for measuring durations. */
export function monotonicMs(): number {
  return performance.now()
}
