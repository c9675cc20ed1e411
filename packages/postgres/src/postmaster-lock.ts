import { readFileSync, readlinkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

import { systemCodeOf } from './postgres-error.ts'
import { commandLineOf, isAlive, readOr } from './process-table.ts'

/** Who holds a data directory. */
export type Holder = 'nobody' | { readonly pid: number; readonly isStopping: boolean }

/**
 * Clears the way for a server in `dataDir`, unless one is alive there. Postgres itself starts over the `postmaster.pid` of a
 * server that was killed, but not if the same user runs anything under that process id by now: after a restart of the
 * machine or of a container that is likely.
 */
export function releaseStaleLock(dataDir: string): Holder {
  const lockFile = join(dataDir, 'postmaster.pid')
  const { pid, isStopping = false } = readLock(lockFile)
  if (pid === undefined || !isAlive(pid)) return 'nobody'
  if (isPostmasterOf(pid, dataDir)) return { pid, isStopping }
  // Renamed, not removed: should another process have started a server since we looked, its lock goes back.
  const removed = `${lockFile}.${process.pid}`
  renameSync(lockFile, removed)
  if (readLock(removed).pid === pid) rmSync(removed)
  else renameSync(removed, lockFile)
  return 'nobody'
}

/** The port of the server that is alive in `dataDir`, and not on its way out; undefined if there is none. */
export function findPostmasterPort(dataDir: string): number | undefined {
  const { pid, port, isStopping } = readLock(join(dataDir, 'postmaster.pid'))
  if (pid === undefined || isStopping === true || !isAlive(pid) || !isPostmasterOf(pid, dataDir)) return undefined
  return port
}

interface Lock {
  readonly pid?: number
  readonly port?: number
  readonly isStopping?: boolean
}

/** The first line is the process id of the server, negative in single-user mode; the fourth its port; the eighth its state. */
function readLock(lockFile: string): Lock {
  try {
    const lines = readFileSync(lockFile, 'utf8').split('\n')
    const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10))
    return pid > 0 ? { pid, port: Number(lines[3]), isStopping: lines[7]?.trim() === 'stopping' } : {}
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return {}
    throw error
  }
}

function isPostmasterOf(pid: number, dataDir: string): boolean {
  const [command = '', ...args] = commandLineOf(pid)
  switch (process.platform) {
    case 'linux':
      if (basename(command) !== 'postgres') return false
      // A server works in its data directory. Another user's may not be asked where it does; then its arguments tell.
      return args.includes(dataDir) || readOr('', () => readlinkSync(`/proc/${pid}/cwd`)) === realpathSync(dataDir)
    case 'win32':
      return true // Not asked there: a process that is alive is believed to be the server.
    default: {
      const line = [command, ...args].join(' ')
      return line.includes('postgres') && line.includes(dataDir)
    }
  }
}
