import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

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

interface Child {
  readonly ppid: number
  /** The program that a process runs; undefined if the system does not say. */
  readonly programOf: (pid: number) => string | undefined
}

const PARENT_LOOK_MS = 250
/** What `npm start` and its like start a script with. */
const LAUNCHERS = /^(npm|npx|pnpm|yarn|bun|node|[a-z]*sh)$/
const THIS_PROCESS: Child = {
  get ppid() {
    return process.ppid
  },
  programOf: readProgram,
}

/**
 * Fires once the process that started this one is gone, killed before it could pass a signal on. The system gives a process
 * whose parent has ended another one. That may have happened before the shell could tell `parent`: then it is no launcher.
 */
export function watchParent(parent: number, clock: Pick<Clock, 'every'>, child: Child = THIS_PROCESS): AbortSignal {
  const interrupt = new AbortController()
  const look = (): void => {
    if (child.ppid !== parent) interrupt.abort()
  }
  if (!LAUNCHERS.test(child.programOf(parent) ?? 'npm')) interrupt.abort()
  look()
  clock.every(PARENT_LOOK_MS, look)
  return interrupt.signal
}

function readProgram(pid: number): string | undefined {
  try {
    // npm calls itself `npm start`, which the system takes for one word.
    const [command = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/)
    return basename(command).replace(/^-/, '')
  } catch {
    return undefined
  }
}
