import { setTimeout as timeout } from 'node:timers/promises'

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
  return timeout(ms, undefined, { signal }).catch(() => undefined)
}

/** Monotonic milliseconds, for measuring durations. */
export function monotonicMs(): number {
  return performance.now()
}
