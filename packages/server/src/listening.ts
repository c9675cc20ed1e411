import { once } from 'node:events'
import { createServer, isIPv6, type AddressInfo, type Server } from 'node:net'

import { findPortHolder } from './port-holder.ts'
import { codeOf, ServiceError } from './service-error.ts'

export interface Address {
  readonly host: string
  readonly port: number
  /** How to choose another port: `set CARILLON_PORT`. */
  readonly remedy: string
}

/** Listens; throws ServiceError in words for who chose the address. */
export async function listen(server: Server, { host, port, remedy }: Address): Promise<void> {
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (error) {
    throw asServiceError(error, { host, port, remedy })
  }
}

/** Fails as `listen` would, before anything else was started. Somebody may still take the port in between. */
export async function requireFreePort(address: Address): Promise<void> {
  if (address.port === 0) return
  const probe = createServer()
  await listen(probe, address)
  probe.close()
  await once(probe, 'close')
}

/** Where a server that listens can be reached from this machine. */
export function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  return `http://${reachable(host)}:${port}`
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return isIPv6(host) ? `[${host}]` : host
}

export function placeOf({ host, port }: Pick<Address, 'host' | 'port'>): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}

export function asServiceError(error: unknown, { host, port, remedy }: Address): unknown {
  const place = placeOf({ host, port })
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new ServiceError(
        'port_in_use',
        `${place} is in use by ${findPortHolder(host, port) ?? 'another program'}: stop it or ${remedy}`,
        { cause: error },
      )
    case 'EACCES':
      return new ServiceError('address_unavailable', `this user may not listen on ${place}: ${remedy} above 1023`, {
        cause: error,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ServiceError(
        'address_unavailable',
        `${host} is no address of this machine: set CARILLON_HOST to one`,
        {
          cause: error,
        },
      )
    default:
      return error
  }
}
