import { readFileSync, readlinkSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

import { systemCodeOf } from './postgres-error.ts'
import { commandLineOf, isAlive, readOr } from './process-table.ts'

/** The Postgres server that runs on a data directory. */
export interface LockHolder {
  readonly pid: number
  readonly isStopping: boolean
}

/**
 * Removes a stale `postmaster.pid`, or returns the server that runs on `dataDir`. Postgres itself ignores the lock of a killed
 * server, unless another process of the same user has its process id now. That is likely after a restart of the machine or of
 * a container.
 */
export function releaseStaleLock(dataDir: string): LockHolder | undefined {
  const lockFile = join(dataDir, 'postmaster.pid')
  const { pid, isStopping = false } = readLock(lockFile)
  if (pid === undefined || !isAlive(pid)) return undefined
  if (isPostmasterOf(pid, dataDir)) return { pid, isStopping }
  // Renames the file before removing it: if another server wrote its lock in the meantime, the lock is put back.
  const removed = `${lockFile}.${process.pid}`
  renameSync(lockFile, removed)
  if (readLock(removed).pid === pid) rmSync(removed)
  else renameSync(removed, lockFile)
  return undefined
}

/** The port of the server that runs on `dataDir` and is not stopping; undefined if there is none. */
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

/** Line 1 is the process id of the server, negative in single-user mode. Line 4 is its port, line 8 its state. */
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
      // The working directory of a server is its data directory. For a server of another user only its arguments are readable.
      return args.includes(dataDir) || readOr('', () => readlinkSync(`/proc/${pid}/cwd`)) === realpathSync(dataDir)
    case 'win32':
      return true // Command lines are not read on Windows: any live process with that id counts as the server.
    default: {
      const line = [command, ...args].join(' ')
      return line.includes('postgres') && line.includes(dataDir)
    }
  }
}
