import type { Clock } from './clock.ts'

/** By keys, by a service manager, or because the terminal was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Interruptible {
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown
}

/** A terminal interrupts everybody at once, and npm, started from it, passes the same interrupt on: that is one, not two. */
const SAME_MS = 500

/** Fires at the first interrupt. At the second, `end` is called: somebody does not want to wait for an orderly end. */
export function watchInterrupts(target: Interruptible, clock: Pick<Clock, 'now'>, end: () => void): AbortSignal {
  const interrupt = new AbortController()
  let firstAt = 0
  const handle = (): void => {
    if (!interrupt.signal.aborted) {
      firstAt = clock.now()
      interrupt.abort()
    } else if (clock.now() - firstAt >= SAME_MS) end()
  }
  for (const signal of SIGNALS) target.on(signal, handle)
  return interrupt.signal
}
