import { readdirSync, readFileSync } from 'node:fs'

/** Of the kernel's accounting, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

interface ProcessTimes {
  readonly parent: number
  /** Its own. */
  readonly seconds: number
  /** Of those of its children that have ended. */
  readonly endedSeconds: number
}

/** CPU seconds that a process has used. */
export function cpuSecondsOf(pid: number): number {
  return timesOf(pid)?.seconds ?? Number.NaN
}

/** CPU seconds of a process and of all its children, those that have ended among them. */
export function cpuSecondsOfFamily(pid: number): number {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  const children = all.map(timesOf).filter((times) => times?.parent === pid)
  const own = timesOf(pid)
  return children.reduce((sum, child) => sum + (child?.seconds ?? 0), (own?.seconds ?? 0) + (own?.endedSeconds ?? 0))
}

export function parentOf(pid: number): number {
  return timesOf(pid)?.parent ?? 0
}

/** What of it is in memory. */
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
  // The second field is the name in brackets, which may hold blanks and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [parent, user, system, endedUser, endedSystem] = [1, 11, 12, 13, 14].map((index) => Number(fields[index]))
  const seconds = ((user ?? 0) + (system ?? 0)) / TICKS_PER_SECOND
  return { parent: parent ?? 0, seconds, endedSeconds: ((endedUser ?? 0) + (endedSystem ?? 0)) / TICKS_PER_SECOND }
}
