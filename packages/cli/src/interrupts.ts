import type { Clock } from './clock.ts'

/** By keys, by a service manager, or because the terminal was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Interruptible {
  readonly ppid: number
  readonly env: Readonly<Record<string, string | undefined>>
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown
}

/** A terminal interrupts everybody at once, and npm, started from it, passes the same interrupt on: that is one, not two. */
const SAME_MS = 500
const PARENT_LOOK_MS = 250

/**
 * Fires at the first interrupt, and if npm started this process and has ended before it: killed, or ended by a signal that
 * the shell between the two did not pass on. At the second interrupt `end` is called: somebody does not want to wait.
 */
export function watchInterrupts(
  target: Interruptible,
  clock: Pick<Clock, 'now' | 'every'>,
  end: () => void,
): AbortSignal {
  const interrupt = new AbortController()
  let firstAt = 0
  const handle = (): void => {
    if (!interrupt.signal.aborted) {
      firstAt = clock.now()
      interrupt.abort()
    } else if (clock.now() - firstAt >= SAME_MS) end()
  }
  for (const signal of SIGNALS) target.on(signal, handle)
  if (target.env['npm_lifecycle_event'] !== undefined) {
    const parent = target.ppid
    clock.every(PARENT_LOOK_MS, () => {
      if (target.ppid !== parent) interrupt.abort()
    })
  }
  return interrupt.signal
}
