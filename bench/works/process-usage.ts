import { readdirSync, readFileSync } from 'node:fs'

/** The unit of the kernel's CPU times. It is the same on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

interface ProcessTimes {
  readonly parent: number
  /** The CPU time of the process itself. */
  readonly seconds: number
  /** The CPU time of its children that have ended. */
  readonly endedSeconds: number
}

/** The CPU seconds of a process. */
export function cpuSecondsOf(pid: number): number {
  return timesOf(pid)?.seconds ?? Number.NaN
}

/** The CPU seconds of a process and of all its children, including those that have ended. */
export function cpuSecondsOfFamily(pid: number): number {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  const children = all.map(timesOf).filter((times) => times?.parent === pid)
  const own = timesOf(pid)
  return children.reduce((sum, child) => sum + (child?.seconds ?? 0), (own?.seconds ?? 0) + (own?.endedSeconds ?? 0))
}

export function parentOf(pid: number): number {
  return timesOf(pid)?.parent ?? 0
}

/** The resident memory of a process. */
export function residentMegabytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) / 1024
}

/** Undefined if the process has ended. */
function timesOf(pid: number): ProcessTimes | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The second field is the name in parentheses, which may contain blanks and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [parent, user, system, endedUser, endedSystem] = [1, 11, 12, 13, 14].map((index) => Number(fields[index]))
  const seconds = ((user ?? 0) + (system ?? 0)) / TICKS_PER_SECOND
  return { parent: parent ?? 0, seconds, endedSeconds: ((endedUser ?? 0) + (endedSystem ?? 0)) / TICKS_PER_SECOND }
}
