import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

import { systemCodeOf } from './postgres-error.ts'

/** True while a process runs. A zombie has ended, so it is not alive. */
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
 * When a process started, as text for comparison only. The system reuses process ids, but an id and a start together are
 * unique. Empty if the process has ended or the system does not report it.
 */
export function startTimeOf(pid: number): string {
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

/** The command and arguments of a process; empty if it has ended. Only Linux separates arguments that contain spaces. */
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

/** Changes at each boot. Start ticks count from the boot. */
const BOOT_ID = '/proc/sys/kernel/random/boot_id'

/** The parent of a process; undefined if the system does not report it. */
export function parentOf(pid: number): number | undefined {
  const parent = process.platform === 'linux' ? statOf(pid)?.parent : ps(pid, 'ppid=').trim()
  return parent === undefined || parent === '' ? undefined : Number(parent)
}

function statOf(pid: number): { state: string; parent: string; startTicks: string } | undefined {
  const text = readOr('', () => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, startTicks] = [fields[0], fields[1], fields[19]]
  return state && parent && startTicks ? { state, parent, startTicks } : undefined
}

function ps(pid: number, column: string): string {
  return readOr('', () => execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }))
}

/** Returns the fallback if `read` throws: the process may end during the read. */
export function readOr(fallback: string, read: () => string): string {
  try {
    return read()
  } catch {
    return fallback
  }
}
