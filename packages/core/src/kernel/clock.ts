import { setTimeout as timeout } from 'node:timers/promises'

/** Time for all of core. Tests inject their own clock, so no test waits for real time. */
export interface Clock {
  /** The current time for SQL statements. Null in production: Postgres' own clock decides (I10). Tests return an instant. */
  databaseNow(): Date | null
  /** Milliseconds that only grow, whatever is done to the system clock. For durations, never to decide what is due. */
  monotonicMs(): number
  /** Resolves after the time, or as soon as the signal fires; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** A short delay that lets concurrent writes share one batch. Nothing depends on its length: in tests it is zero. */
  batchDelay(): Promise<void>
  /** Calls `callback` after the time, unless the caller calls the returned function first. */
  after(ms: number, callback: () => void): () => void
}

// The longest delay that setTimeout accepts. A longer sleep ends early, and the caller checks the time again.
const TIMEOUT_MAX_MS = 2 ** 31 - 1
/** How long `batchDelay` takes: about the time of a slow flush to disk. The statements that batching saves cost more. */
const BATCH_DELAY_MS = 10

export const systemClock: Clock = {
  databaseNow: () => null,
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) => timeout(Math.min(ms, TIMEOUT_MAX_MS), undefined, { signal }).catch(() => undefined),
  batchDelay: () =>
    new Promise((resolve) => {
      setTimeout(resolve, BATCH_DELAY_MS)
    }),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), TIMEOUT_MAX_MS))
    return () => clearTimeout(timer)
  },
}

/** This machine's own time in epoch milliseconds. Only the doctor reads it, to report skew: Postgres decides what is due (I10). */
export function machineNow(): number {
  return Date.now()
}
