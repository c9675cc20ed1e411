import { setTimeout as timeout } from 'node:timers/promises'

/** The time and the timers of this process. Tests pass their own. */
export interface Clock {
  /** Epoch milliseconds, for "in 4 s" and `--in`. The database's clock decides what is due, never this one. */
  now(): number
  /** Resolves after the time, or as soon as the signal aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls back once after the time, unless the returned function is called first. */
  after(ms: number, callback: () => void): () => void
  /** Calls back at every interval. Does not keep the process alive. */
  every(ms: number, callback: () => void): void
}

/** The longest delay that setTimeout accepts. A longer sleep or timer ends after this time. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => timeout(Math.min(ms, TIMEOUT_MAX_MS), undefined, { signal }).catch(() => undefined),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, TIMEOUT_MAX_MS))
    return () => clearTimeout(timer)
  },
  every: (ms, callback) => {
    setInterval(callback, ms).unref()
  },
}
