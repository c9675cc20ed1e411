import { isPublic, readAddress } from './address.ts'
import { parseHostPattern } from './host-pattern.ts'
import { parseNetwork } from './network.ts'

/** Where an installation may call. A call needs both: its host is listed, and so is, or is public, every address behind it. */
export interface AllowedHosts {
  readonly allowsHost: (url: URL) => boolean
  /** As resolvers and sockets write it; false for what is none. */
  readonly allowsAddress: (address: string, port: number) => boolean
}

/**
 * Reads the list of an installation: host patterns, and networks such as `10.0.0.0/8`. A pattern says which hosts may be
 * called; a network, or an address that is listed by itself, which addresses may be called besides the public ones. So `*`
 * is every public host and no private one, and a listed name is not trusted with its DNS.
 *
 * @throws RangeError telling the entry that cannot be read
 */
export function parseAllowedHosts(texts: readonly string[]): AllowedHosts {
  const networks = texts.filter(isNetwork).map(parseNetwork)
  const patterns = texts.filter((text) => !isNetwork(text)).map(parseHostPattern)
  return {
    allowsHost: (url) => patterns.some((pattern) => pattern.matches(url)),
    allowsAddress: (text, port) => {
      const address = readAddress(text)
      if (address === undefined) return false
      const isListed = patterns.some(
        (pattern) =>
          pattern.address?.toString() === address.toString() && (pattern.port === undefined || pattern.port === port),
      )
      return isListed || isPublic(address) || networks.some((network) => network.contains(address))
    },
  }
}

/** What a tenant is narrowed to within its installation's list. */
export interface TenantHosts {
  readonly allowsHost: (url: URL) => boolean
}

/**
 * Reads the list of a tenant: host patterns only, since which addresses are called is the installation's to say.
 *
 * @throws RangeError telling the entry that cannot be read
 */
export function parseTenantHosts(texts: readonly string[]): TenantHosts {
  const patterns = texts.map(parseHostPattern)
  return { allowsHost: (url) => patterns.some((pattern) => pattern.matches(url)) }
}

function isNetwork(text: string): boolean {
  return /^[\da-f.:[\]]+\//i.test(text)
}
