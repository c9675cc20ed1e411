import { isPublic, parseNetwork, readAddress, type Address } from './addresses.ts'

/** One entry of a list of hosts. */
interface HostPattern {
  matches(url: URL): boolean
  /** The address, if the entry is one; undefined for a pattern of names. */
  readonly address: Address | undefined
  /** Undefined means any port. */
  readonly port: number | undefined
}

// The URL standard allows a comma in a host; here it means a list that was not split.
const PATTERN = /^(?<host>\*|(?:\*\.)?[^\s*:,;/@?#\\[\]]+|\[[\da-f:.]+\])(?::(?<port>\d{1,5}))?$/i
const EXPECTED = 'a host such as api.example.com, *.example.com, 127.0.0.1 or [::1], with :port or without, or *'

/**
 * `api.example.com` is that host on any port, `api.example.com:8443` on that port only, `*.example.com` every name below
 * it but not itself, `*` every host. Hosts are compared as the URL standard normalizes them, so another spelling of an
 * address makes no difference. The connector decides whether the addresses of a name may be called.
 *
 * @throws RangeError for anything else, so that a misspelt list stops the process at its start
 */
function parseHostPattern(text: string): HostPattern {
  const { host, port: portText } = PATTERN.exec(text)?.groups ?? {}
  const port = portText === undefined ? undefined : Number(portText)
  if (host === undefined || port === 0 || (port ?? 0) > 65_535) throw unreadable(text)
  const known = readHost(host)
  if (known === undefined) throw unreadable(text)
  return {
    matches: (url) => (port === undefined || port === portOf(url)) && known.matches(hostOf(url)),
    address: known.address,
    port,
  }
}

function readHost(host: string): { matches: (name: string) => boolean; address: Address | undefined } | undefined {
  if (host === '*') return { matches: () => true, address: undefined }
  const isWildcard = host.startsWith('*.')
  const url = URL.parse(`http://${isWildcard ? host.slice(2) : host}/`)
  if (url === null || url.hostname === '') return undefined
  const known = hostOf(url)
  const address = addressOf(url)
  if (!isWildcard) return { matches: (name) => name === known, address }
  // An address has no names below it; the operator probably means a network.
  return address === undefined ? { matches: (name) => name.endsWith(`.${known}`), address } : undefined
}

/** The host without a final dot: `example.com.` is the same host as `example.com`. `URL` makes it lower case and canonical. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

/** The address in a URL; undefined for a host name. */
export function addressOf(url: URL): Address | undefined {
  return readAddress(url.hostname.replace(/^\[(.*)\]$/, '$1'))
}

export function portOf(url: { readonly port: string; readonly protocol: string }): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

function unreadable(text: string): RangeError {
  return new RangeError(`expected ${EXPECTED}, got ${JSON.stringify(text)}`)
}

/** What an installation may call. A call needs both: its host is listed, and every address behind it is public or listed. */
export interface AllowedHosts {
  readonly allowsHost: (url: URL) => boolean
  /** True if the address may be called on that port. Expects an address as resolvers and sockets write it; false for other texts. */
  readonly allowsAddress: (address: string, port: number) => boolean
}

/**
 * Reads the list of an installation: host patterns, and networks such as `10.0.0.0/8`. A pattern allows hosts; a network or
 * a listed address allows addresses that are not public. So `*` is every public host and no private one, and the DNS of a
 * listed name cannot lead to a private address.
 *
 * @throws RangeError naming the entry that cannot be read
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

/** The hosts that a tenant may call, within the list of its installation. */
export interface TenantHosts {
  readonly allowsHost: (url: URL) => boolean
}

/**
 * Reads the list of a tenant: host patterns only, because only the installation allows addresses.
 *
 * @throws RangeError naming the entry that cannot be read
 */
export function parseTenantHosts(texts: readonly string[]): TenantHosts {
  const patterns = texts.map(parseHostPattern)
  return { allowsHost: (url) => patterns.some((pattern) => pattern.matches(url)) }
}

function isNetwork(text: string): boolean {
  return /^[\da-f.:[\]]+\//i.test(text)
}
