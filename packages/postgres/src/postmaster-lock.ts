import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

import { PostgresError, systemCodeOf } from './postgres-error.ts'

/**
 * Clears the way for a server in `dataDir`. Throws if one is alive there; `stopping` if it is on its way out. Postgres
 * itself starts over the `postmaster.pid` of a server that was killed, but not if the same user runs anything under that
 * process id by now: after a restart of the machine or of a container that is likely.
 */
export function releaseStaleLock(dataDir: string): 'free' | 'stopping' {
  const lockFile = join(dataDir, 'postmaster.pid')
  const { pid, isStopping } = readLock(lockFile)
  if (pid === undefined || !isAlive(pid)) return 'free'
  if (isPostmasterOf(pid, dataDir)) {
    if (isStopping) return 'stopping'
    throw directoryInUse(dataDir, pid)
  }
  // Renamed, not removed: should another process have started a server since we looked, its lock goes back.
  const removed = `${lockFile}.${process.pid}`
  renameSync(lockFile, removed)
  if (readLock(removed).pid === pid) rmSync(removed)
  else renameSync(removed, lockFile)
  return 'free'
}

export function directoryInUse(dataDir: string, pid?: number): PostgresError {
  const process = pid === undefined ? '' : ` (process ${pid})`
  return new PostgresError('directory_in_use', `the data directory ${dataDir} is in use by another Postgres${process}`)
}

/** The first line is the process id of the server, negative in single-user mode; the eighth, what it is doing. */
function readLock(lockFile: string): { pid?: number; isStopping?: boolean } {
  try {
    const lines = readFileSync(lockFile, 'utf8').split('\n')
    const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10))
    return pid > 0 ? { pid, isStopping: lines[7]?.trim() === 'stopping' } : {}
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return {}
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCodeOf(error) === 'EPERM'
  }
}

function isPostmasterOf(pid: number, dataDir: string): boolean {
  switch (process.platform) {
    case 'linux': {
      const [command = '', ...args] = readOr('', () => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
      if (basename(command) !== 'postgres') return false
      // A server works in its data directory. Another user's may not be asked where it does; then its arguments tell.
      return args.includes(dataDir) || readOr('', () => readlinkSync(`/proc/${pid}/cwd`)) === realpathSync(dataDir)
    }
    case 'win32':
      return true // Not asked there: a process that is alive is believed to be the server.
    default: {
      const line = readOr('', () => execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }))
      return line.includes('postgres') && line.includes(dataDir)
    }
  }
}

/** The process may end while we look at it. */
function readOr(fallback: string, read: () => string): string {
  try {
    return read()
  } catch {
    return fallback
  }
}
