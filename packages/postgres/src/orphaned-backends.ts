import type { ChildProcess } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { basename } from 'node:path'

import { after } from './clock.ts'
import { commandLineOf, isAlive, parentOf } from './process-table.ts'

/** A backend ends when it waits for something and finds its server gone. A backend that still runs gets SIGQUIT after this time. */
const QUIT_AFTER_MS = 500
/** A backend that still runs after this time gets SIGKILL. Postgres itself waits as long. */
const KILL_AFTER_MS = 5000
/** After this time Carillon waits no longer for other processes that hold the log, such as a program that a statement started. */
const LEAVE_AFTER_MS = 10_000

/**
 * Ends the backends that a killed Postgres server leaves behind, as a server does if one of its backends crashes: SIGQUIT to
 * all, then SIGKILL to those that remain. A backend that computes for minutes would otherwise keep the shared memory, which
 * blocks the next server, and would survive a stop.
 *
 * The `close` event of `child` fires when the last process that holds the server's log has ended.
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
 * Returns a function that recognises the orphaned backends of a server in `folder`. It compares the working directory by
 * inode, because the folder may have been renamed or removed since. Linux only.
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

/** A backend has a title such as `postgres: checkpointer`. A server has the path of its program instead. */
function isBackend(pid: number): boolean {
  return commandLineOf(pid)[0]?.startsWith('postgres: ') === true
}

/** Another server may have been started on the folder in the meantime; its backends are no orphans. */
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
      // The process has ended in the meantime.
    }
  }
}
