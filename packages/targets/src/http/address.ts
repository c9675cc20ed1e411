import { isIP } from 'node:net'

import ipaddr from 'ipaddr.js'

/** An IP address. One that is IPv4 in the clothes of IPv6 (`::ffff:10.0.0.1`) is the IPv4 address that it means. */
export type Address = ReturnType<typeof ipaddr.process>

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/** As resolvers and sockets write addresses, without brackets. Undefined for any other text, `127.1` and names included. */
export function readAddress(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text)
}

/**
 * Whether an address belongs to one host on the public internet. Everything else is special: private, loopback, link-local,
 * multicast, set aside for documents, or a tunnel (6to4, Teredo) that may end anywhere.
 */
export function isPublic(address: Address): boolean {
  if (address.kind() === 'ipv4') return address.range() === 'unicast'
  // How a network without IPv4 reaches hosts that have nothing else: the gateway calls the address inside.
  if (address.match(NAT64)) return isPublic(new ipaddr.IPv4(address.toByteArray().slice(-4)))
  // Nothing outside of 2000::/3 was given to anybody, though not all of that has a name in the library.
  return address.match(GLOBAL_UNICAST) && address.range() === 'unicast'
}
