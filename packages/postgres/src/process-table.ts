import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

import { systemCodeOf } from './postgres-error.ts'

/** True while a process runs. A zombie does not: it has ended, and waits only for its parent to notice. */
export function isAlive(pid: number): boolean {
  if (process.platform === 'linux') {
    const state = statOf(pid)?.state
    if (state !== undefined) return state !== 'Z' && state !== 'X'
  }
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return systemCodeOf(error) === 'EPERM'
  }
}

/**
 * When a process started, in words that only compare for equality. The system reuses process ids, so an id and this name a
 * process for good. Empty if the process has ended, or the system does not say.
 */
export function startOf(pid: number): string {
  switch (process.platform) {
    case 'linux': {
      const ticks = statOf(pid)?.startTicks
      return ticks === undefined ? '' : `${readOr('', () => readFileSync(BOOT_ID, 'utf8')).trim()}+${ticks}`
    }
    case 'win32':
      return ''
    default:
      return ps(pid, 'lstart=').trim()
  }
}

/** The command and arguments of a process; empty if it has ended. Split at spaces where the system does not say better. */
export function commandLineOf(pid: number): string[] {
  switch (process.platform) {
    case 'linux':
      return readOr('', () => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
    case 'win32':
      return []
    default:
      return ps(pid, 'args=').split(' ')
  }
}

/** A new id at each start of the machine, from which on ticks are counted. */
const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** The process that started another one, or has inherited it; undefined if the system does not say. */
export function parentOf(pid: number): number | undefined {
  const parent = process.platform === 'linux' ? statOf(pid)?.parent : ps(pid, 'ppid=').trim()
  return parent === undefined || parent === '' ? undefined : Number(parent)
}

function statOf(pid: number): { state: string; parent: string; startTicks: string } | undefined {
  const text = readOr('', () => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name, in parentheses, and may hold spaces and parentheses itself.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, startTicks] = [fields[0], fields[1], fields[19]]
  return state && parent && startTicks ? { state, parent, startTicks } : undefined
}

function ps(pid: number, column: string): string {
  return readOr('', () => execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }))
}

/** The process may end while we look at it. */
export function readOr(fallback: string, read: () => string): string {
  try {
    return read()
  } catch {
    return fallback
  }
}
