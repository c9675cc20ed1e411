import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer, isIPv4, isIPv6, type AddressInfo, type Server } from 'node:net'
import { basename } from 'node:path'

import { codeOf, OperatorError } from './operator-error.ts'

export interface Address {
  readonly host: string
  readonly port: number
  /** How to choose another port, such as `set CARILLON_PORT`. */
  readonly remedy: string
}

/** @throws OperatorError that says why the address cannot be used */
export async function listen(server: Server, address: Address): Promise<void> {
  const { host, port } = address
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (error) {
    throw asListenError(error, address)
  }
}

/** Throws what `listen` would throw, before anything is started. Another process may still occupy the port before `listen` does. */
export async function requireFreePort(address: Address): Promise<void> {
  if (address.port === 0) return
  const probe = createServer()
  await listen(probe, address)
  probe.close()
  await once(probe, 'close')
}

/** The URL at which programs on this machine reach a listening server. */
export function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  return `http://${reachableHost(host)}:${port}`
}

function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}

/** `host:port`, as shown in errors. */
export function describeAddress({ host, port }: Pick<Address, 'host' | 'port'>): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}

export function asListenError(error: unknown, { host, port, remedy }: Address): unknown {
  const address = describeAddress({ host, port })
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new OperatorError(
        'port_in_use',
        `${address} is in use by ${findPortHolder(host, port) ?? 'another program'}: stop it or ${remedy}`,
        { cause: error },
      )
    case 'EACCES':
      return new OperatorError(
        'address_unavailable',
        `expected an address that this user may listen on, got ${address}: ${remedy} above 1023`,
        {
          cause: error,
        },
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new OperatorError(
        'address_unavailable',
        `expected an address of this machine, got ${host}: set CARILLON_HOST to one`,
        { cause: error },
      )
    default:
      return error
  }
}

/** The state of a listening socket in the tables of /proc/net. */
const LISTENING = '0A'

/**
 * The program that listens on a port, such as `node (process 4711)`. Undefined if it cannot be determined: on systems other
 * than Linux, and for programs of other users unless this process runs as root.
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

/** Lists the sockets that listen on a port, named as the links in /proc/<pid>/fd name them. */
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
  // /proc/net/tcp shows an IPv4 address as one number in the machine's byte order. Carillon assumes little-endian, as on x64 and arm64.
  return address.endsWith(bytes.toReversed().join('').toUpperCase())
}

function holdsOne(pid: string, sockets: ReadonlySet<string>): boolean {
  if (!/^\d+$/.test(pid)) return false
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(readlinkSync(`/proc/${pid}/fd/${fd}`)))
  } catch {
    // The process has ended or closed the file meanwhile, or belongs to another user.
    return false
  }
}

function programOf(pid: string): string {
  const [command = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return basename(command) || 'a program'
}
