import type { ChildProcess } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { basename } from 'node:path'

import { after } from './clock.ts'
import { commandLineOf, isAlive, parentOf } from './process-table.ts'

/** Processes of a killed server notice by themselves as soon as they wait for something. After it they are told. */
const QUIT_AFTER_MS = 500
/** As long as Postgres itself waits before it kills. */
const KILL_AFTER_MS = 5000
/** Anything else that still holds the log of the server by then, such as a program that a statement started, is left alone. */
const LEAVE_AFTER_MS = 10_000

/**
 * Ends the processes that a killed server leaves behind, as the server itself does when one of them crashes: it tells all
 * of them to quit, and kills those that do not. One that computes for minutes would otherwise keep the shared memory,
 * without which the next server does not start, and would outlive a stop.
 *
 * The server's log ends with the last process that holds it, and so does the `close` of `child`.
 * @param isOrphan see `orphansIn`
 */
export function endOrphans(child: ChildProcess, isOrphan: (pid: number) => boolean): void {
  child.once('exit', () => {
    const cancels = [
      after(QUIT_AFTER_MS, () => signalAll(isOrphan, 'SIGQUIT')),
      after(KILL_AFTER_MS, () => signalAll(isOrphan, 'SIGKILL')),
      after(LEAVE_AFTER_MS, () => child.stderr?.destroy()),
    ]
    child.once('close', () => {
      for (const cancel of cancels) cancel()
    })
  })
}

/**
 * Tells which processes are left of a server in `folder`. By the folder they work in, whatever it is called by then:
 * somebody may have renamed or removed it. Linux only.
 */
export function orphansIn(folder: string): (pid: number) => boolean {
  const { dev, ino } = statSync(folder, { bigint: true })
  return (pid) => {
    try {
      const cwd = statSync(`/proc/${pid}/cwd`, { bigint: true })
      return cwd.dev === dev && cwd.ino === ino && isBackend(pid) && !isBackendOfLivingServer(pid)
    } catch {
      return false
    }
  }
}

/** `postgres: checkpointer` and the like. A server itself is called by the path of its program. */
function isBackend(pid: number): boolean {
  return commandLineOf(pid)[0]?.startsWith('postgres: ') === true
}

/** Somebody may have started another server on the folder by now. */
function isBackendOfLivingServer(pid: number): boolean {
  return basename(commandLineOf(parentOf(pid) ?? 0)[0] ?? '') === 'postgres'
}

function signalAll(isOrphan: (pid: number) => boolean, signal: NodeJS.Signals): void {
  if (process.platform !== 'linux') return
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  for (const pid of pids.filter((pid) => isOrphan(pid) && isAlive(pid))) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }
}
