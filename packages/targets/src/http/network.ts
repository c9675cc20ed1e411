import ipaddr from 'ipaddr.js'

import type { Address } from './address.ts'

/** Addresses that begin alike. */
export interface Network {
  contains(address: Address): boolean
}

/**
 * `10.0.0.0/8`, `fd00::/8`.
 *
 * @throws RangeError for anything else, also for an address inside of a network: whether that one or all are meant is not
 * to be guessed
 */
export function parseNetwork(text: string): Network {
  const { kind, first, prefix } = readNetwork(text)
  return { contains: (address) => address.kind() === kind && address.match(first, prefix) }
}

function readNetwork(text: string) {
  if (!ipaddr.IPv6.isValidCIDR(text) && !ipaddr.IPv4.isValidCIDRFourPartDecimal(text)) throw unreadable(text)
  const [address, prefix] = ipaddr.parseCIDR(text)
  const kind = address.kind()
  const first = kind === 'ipv4' ? ipaddr.IPv4.networkAddressFromCIDR(text) : ipaddr.IPv6.networkAddressFromCIDR(text)
  // Addresses that mean an IPv4 one are compared as that: a network of the others would hold none.
  if (address.range() === 'ipv4Mapped') throw unreadable(text, 'write the IPv4 network')
  if (first.toString() !== address.toString()) throw unreadable(text, `the network is ${first.toString()}/${prefix}`)
  return { kind, first, prefix }
}

function unreadable(text: string, hint?: string): RangeError {
  const expected = 'expected a network such as 10.0.0.0/8 or fd00::/8'
  return new RangeError(`${expected}, got ${JSON.stringify(text)}${hint === undefined ? '' : `: ${hint}`}`)
}
