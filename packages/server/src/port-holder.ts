import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { basename } from 'node:path'

/** In the tables of sockets: the state of one that listens. */
const LISTENING = '0A'

/**
 * The program that listens on a port, as `node (process 4711)`. Undefined where it cannot be known: on other systems than
 * Linux, and of another user's program unless we are root.
 */
export function findPortHolder(host: string, port: number): string | undefined {
  try {
    const sockets = new Set(['tcp', 'tcp6'].flatMap((table) => listeningSockets(table, host, port)))
    const pid = sockets.size === 0 ? undefined : readdirSync('/proc').find((name) => holdsOne(name, sockets))
    return pid === undefined ? undefined : `${programOf(pid)} (process ${pid})`
  } catch {
    return undefined
  }
}

/** As the links in a process's folder of open files name them. */
function listeningSockets(table: string, host: string, port: number): string[] {
  const rows = readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1)
  return rows.flatMap((row) => {
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/)
    const [address = '', hexPort = ''] = local.split(':')
    const isHolder = state === LISTENING && Number.parseInt(hexPort, 16) === port && conflicts(address, host)
    return isHolder ? [`socket:[${inode}]`] : []
  })
}

/** True if a socket that listens on `address` (bytes in hexadecimal) prevents another from listening on `host`. */
function conflicts(address: string, host: string): boolean {
  if (/^0+$/.test(address) || !isIPv4(host) || host === '0.0.0.0') return true
  const bytes = host.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))
  // The kernel prints the number as this machine stores it; all that Node runs on store the last byte first.
  return address.endsWith(bytes.toReversed().join('').toUpperCase())
}

function holdsOne(pid: string, sockets: ReadonlySet<string>): boolean {
  if (!/^\d+$/.test(pid)) return false
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(readlinkSync(`/proc/${pid}/fd/${fd}`)))
  } catch {
    // It has ended, closed the file meanwhile, or is another user's.
    return false
  }
}

function programOf(pid: string): string {
  const [command = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return basename(command) || 'a program'
}
