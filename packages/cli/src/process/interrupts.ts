import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

import type { Clock } from './clock.ts'

/** Ctrl-C, a service manager that stops the program, and a terminal that closes. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

interface Interruptible {
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown
}

/**
 * A terminal signals the whole process group, and npm passes the same signal on, so one Ctrl-C may arrive twice. Signals within
 * this time of the first count as the same interrupt.
 */
const SAME_INTERRUPT_MS = 500

/** Returns a signal that aborts at the first interrupt. The second one calls `end`: the user does not want to wait any longer. */
export function watchInterrupts(target: Interruptible, clock: Pick<Clock, 'now'>, end: () => void): AbortSignal {
  const interrupt = new AbortController()
  let firstAt = 0
  const handle = (): void => {
    if (!interrupt.signal.aborted) {
      firstAt = clock.now()
      interrupt.abort()
    } else if (clock.now() - firstAt >= SAME_INTERRUPT_MS) end()
  }
  for (const signal of SIGNALS) target.on(signal, handle)
  return interrupt.signal
}

interface Child {
  readonly ppid: number
  /** The program that a process runs; undefined if the system does not say. */
  readonly programOf: (pid: number) => string | undefined
}

const PARENT_POLL_MS = 250
/** The programs that start this one through `npm start` and similar commands. */
const LAUNCHERS = /^(npm|npx|pnpm|yarn|bun|node|[a-z]*sh)$/
const THIS_PROCESS: Child = {
  get ppid() {
    return process.ppid
  },
  programOf: readProgram,
}

/**
 * Returns a signal that aborts once the parent process has died without passing a signal on, for example after `kill -9` of npm.
 * The kernel then gives this process another parent. If the parent died before the shell expanded `$PPID`, `parent` is already the
 * new parent, which this recognizes because the new parent is no launcher.
 */
export function watchParent(parent: number, clock: Pick<Clock, 'every'>, child: Child = THIS_PROCESS): AbortSignal {
  const interrupt = new AbortController()
  const check = (): void => {
    if (child.ppid !== parent) interrupt.abort()
  }
  if (!LAUNCHERS.test(child.programOf(parent) ?? 'npm')) interrupt.abort()
  check()
  clock.every(PARENT_POLL_MS, check)
  return interrupt.signal
}

function readProgram(pid: number): string | undefined {
  try {
    // npm sets its process title to `npm start`, which shows up as one argument.
    const [command = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/)
    return basename(command).replace(/^-/, '')
  } catch {
    return undefined
  }
}
