import { ADDRCONFIG, type LookupAddress } from 'node:dns'
import { lookup as lookUp } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'

import { buildConnector } from 'undici'

import { portOf } from './hosts.ts'

export interface ResolvedAddress {
  readonly address: string
  /** 4 or 6. */
  readonly family: number
}

/** Finds every address of a name. Rejects if there is none. */
export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>

/** Asks the resolver of this machine, which also reads the hosts file. Finds only IPv4 or IPv6 if the machine has only that. */
export const resolveBySystem: Resolve = (hostname) => lookUp(hostname, { all: true, hints: ADDRCONFIG })

const CONNECT_TIMEOUT_MS = 10_000

/** Thrown if a host has an address that may not be called. The error does not tell which address. */
export class AddressNotAllowedError extends Error {
  override readonly name = 'AddressNotAllowedError'
}

export interface ConnectionGuard {
  readonly allowsAddress: (address: string, port: number) => boolean
  readonly resolve: Resolve
  /** Creates the function that opens a TCP connection and asks `lookup` for the addresses of a name. @default undici's */
  readonly dial?: (lookup: LookupFunction) => buildConnector.connector
}

/**
 * Connects only to addresses that may be called. It resolves a name once, checks all addresses found and tries no others: a
 * second resolution could find other addresses (DNS rebinding). It checks the remote address again before it writes anything,
 * TLS included, because the network may redirect a connection.
 *
 * The checks happen once per connection: later requests on it reach the same address.
 */
export function guardedConnector({
  allowsAddress,
  resolve,
  dial = dialTcp,
}: ConnectionGuard): buildConnector.connector {
  const startTls = buildConnector({ allowH2: false, timeout: CONNECT_TIMEOUT_MS })

  return (options, callback) => {
    const port = portOf(options)
    const allows = (address: string): boolean => allowsAddress(address, port)
    // Node calls the lookup only for a name, so an address is checked here.
    if (isIP(options.hostname) !== 0 && !allows(options.hostname)) {
      callback(new AddressNotAllowedError(), null)
      return
    }
    // A lookup does not receive the port, so each connection has its own lookup.
    const connect = dial(checkedLookup(resolve, allows))
    connect({ hostname: options.hostname, protocol: 'http:', port: String(port) }, (error, socket) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      const fault = endFault(socket.remoteAddress, allows)
      if (fault !== undefined) {
        socket.destroy()
        callback(fault, null)
      } else if (options.protocol === 'https:') {
        startTls({ ...options, httpSocket: socket }, callback)
      } else {
        callback(null, socket)
      }
    })
  }
}

function dialTcp(lookup: LookupFunction): buildConnector.connector {
  return buildConnector({ lookup, timeout: CONNECT_TIMEOUT_MS })
}

/** Why nothing may be written to an open connection; undefined if its remote address may be called. */
function endFault(remoteAddress: string | undefined, allows: (address: string) => boolean): Error | undefined {
  // The other side has already closed the connection. A retry may succeed.
  if (remoteAddress === undefined) {
    return Object.assign(new Error('expected an open connection, got a closed one'), { code: 'ECONNRESET' })
  }
  return allows(remoteAddress) ? undefined : new AddressNotAllowedError()
}

function checkedLookup(resolve: Resolve, allows: (address: string) => boolean): LookupFunction {
  const ask = callbackify((hostname: string) => checkedAddresses(hostname, resolve, allows))
  return (hostname, { all }, callback) =>
    ask(hostname, (error, addresses) => {
      if (error !== null) callback(error, '')
      else if (all === true) callback(null, addresses)
      else callback(null, addresses[0].address, addresses[0].family)
    })
}

/** Throws if one address of a name may not be called: otherwise the name's DNS server would choose which address is tried. */
async function checkedAddresses(
  hostname: string,
  resolve: Resolve,
  allows: (address: string) => boolean,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const addresses = (await resolve(hostname)).map(({ address }) => ({ address, family: isIP(address) }))
  const [first, ...others] = addresses
  if (first === undefined) {
    throw Object.assign(new Error(`expected an address of ${hostname}, got none`), { code: 'ENOTFOUND' })
  }
  if (!addresses.every(({ address }) => allows(address))) throw new AddressNotAllowedError()
  return [first, ...others]
}
