/** Calls back after `ms`, unless the returned function was called before. Does not keep the process alive. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms)
  timer.unref()
  return () => {
    clearTimeout(timer)
  }
}

/** Resolves after `ms`, or as soon as the signal fires; never rejects. */
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

/** Milliseconds that only ever grow, for durations. */
export function monotonicMs(): number {
  return performance.now()
}
