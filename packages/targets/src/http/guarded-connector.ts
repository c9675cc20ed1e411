import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'

import { buildConnector } from 'undici'

import { portOf } from './host-pattern.ts'
import type { Resolve } from './system-resolver.ts'

const CONNECT_TIMEOUT_MS = 10_000

/** A host leads to an address that may not be called. It does not say which. */
export class AddressNotAllowedError extends Error {
  override readonly name = 'AddressNotAllowedError'
}

export interface ConnectionGuard {
  readonly allowsAddress: (address: string, port: number) => boolean
  readonly resolve: Resolve
  /** Opens the TCP connection, asking `lookup` for the addresses of a name. @default undici's */
  readonly dial?: (lookup: LookupFunction) => buildConnector.connector
}

/**
 * Connects only to addresses that may be called. All addresses of a name are checked, and only those that were checked are
 * tried: a name that is resolved a second time could lead elsewhere (DNS rebinding). Where the connection ended is checked
 * once more before anything is written to it, TLS included, since a network may lead it elsewhere.
 *
 * Once per connection: later requests on it go to the same place.
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
    // A socket asks for no lookup of what is an address already.
    if (isIP(options.hostname) !== 0 && !allows(options.hostname)) {
      callback(new AddressNotAllowedError(), null)
      return
    }
    // A lookup is not told the port, so each connection has its own.
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

/** Why nothing may be written to a connection that stands. */
function endFault(remoteAddress: string | undefined, allows: (address: string) => boolean): Error | undefined {
  // The other side was gone before we looked; that may pass.
  if (remoteAddress === undefined) return Object.assign(new Error('gone'), { code: 'ECONNRESET' })
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

/** One address that may not be called refuses all: which of them would be tried first is not for the name to say. */
async function checkedAddresses(
  hostname: string,
  resolve: Resolve,
  allows: (address: string) => boolean,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const addresses = (await resolve(hostname)).map(({ address }) => ({ address, family: isIP(address) }))
  const [first, ...others] = addresses
  if (first === undefined) throw Object.assign(new Error('no address'), { code: 'ENOTFOUND' })
  if (!addresses.every(({ address }) => allows(address))) throw new AddressNotAllowedError()
  return [first, ...others]
}
