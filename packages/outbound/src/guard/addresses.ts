import { isIP } from 'node:net'

import ipaddr from 'ipaddr.js'

/** An IP address. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) is read as its IPv4 address. */
export type Address = ReturnType<typeof ipaddr.process>

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/** Reads an address as resolvers and sockets write it, without brackets. Undefined for names and for spellings such as `127.1`. */
export function readAddress(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text)
}

/**
 * Whether an address belongs to one host on the public internet. Everything else is special: private, loopback, link-local,
 * multicast, reserved for documentation, or a tunnel (6to4, Teredo) that may end anywhere.
 */
export function isPublic(address: Address): boolean {
  if (address.kind() === 'ipv4') return address.range() === 'unicast'
  // A network without IPv4 reaches an IPv4 host through a NAT64 gateway, which calls the IPv4 address in the last four bytes.
  if (address.match(NAT64)) return isPublic(new ipaddr.IPv4(address.toByteArray().slice(-4)))
  // IANA has assigned no public addresses outside of 2000::/3, but the library calls some of those `unicast`.
  return address.match(GLOBAL_UNICAST) && address.range() === 'unicast'
}

/** A range of addresses with a common prefix. */
export interface Network {
  contains(address: Address): boolean
}

/**
 * Reads a network such as `10.0.0.0/8` or `fd00::/8`.
 *
 * @throws RangeError for anything else, also for an address with a prefix such as `10.0.0.1/8`: its author may mean that address
 * or the whole network
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
  // `readAddress` reads mapped addresses as IPv4, so a network of mapped addresses would contain none.
  if (address.range() === 'ipv4Mapped') throw unreadable(text, 'write the IPv4 network')
  if (first.toString() !== address.toString()) throw unreadable(text, `the network is ${first.toString()}/${prefix}`)
  return { kind, first, prefix }
}

function unreadable(text: string, hint?: string): RangeError {
  const expected = 'expected a network such as 10.0.0.0/8 or fd00::/8'
  return new RangeError(`${expected}, got ${JSON.stringify(text)}${hint === undefined ? '' : `: ${hint}`}`)
}
