import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

import type { Clock } from './clock.ts'

/** By keys, by a service manager, or because the terminal was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Interruptible {
  readonly ppid: number
  readonly env: Readonly<Record<string, string | undefined>>
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown
}

interface InterruptOptions {
  readonly clock: Pick<Clock, 'now' | 'every'>
  /** Called at the second interrupt: somebody does not want to wait for an orderly end. */
  readonly end: () => void
  /** The program that a process runs; undefined if the system does not say. @default what Linux says */
  readonly programOf?: (pid: number) => string | undefined
}

/** A terminal interrupts everybody at once, and npm, started from it, passes the same interrupt on: that is one, not two. */
const SAME_MS = 500
const PARENT_LOOK_MS = 250
/** What npm and its like start a script with. */
const LAUNCHERS = /^(npm|npx|pnpm|yarn|bun|node|[a-z]*sh)$/

/**
 * Fires at the first interrupt, and if npm started this process and has ended before it: killed, or ended by a signal that
 * the shell between the two did not pass on.
 */
export function watchInterrupts(target: Interruptible, options: InterruptOptions): AbortSignal {
  const { clock, end, programOf = readProgram } = options
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
    // npm may be gone before we look for the first time. The system has given us another parent then.
    if (!LAUNCHERS.test(programOf(parent) ?? 'npm')) interrupt.abort()
    clock.every(PARENT_LOOK_MS, () => {
      if (target.ppid !== parent) interrupt.abort()
    })
  }
  return interrupt.signal
}

function readProgram(pid: number): string | undefined {
  try {
    // npm calls itself `npm start`, in one word for the system.
    const [command = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/)
    return basename(command).replace(/^-/, '')
  } catch {
    return undefined
  }
}
