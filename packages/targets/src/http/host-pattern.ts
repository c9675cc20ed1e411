import { readAddress, type Address } from './address.ts'

/** Hosts that may be called, as an operator writes them. */
export interface HostPattern {
  matches(url: URL): boolean
  /** The one address that is listed by itself, not by a name; undefined for a pattern of names. */
  readonly address: Address | undefined
  /** Undefined: any. */
  readonly port: number | undefined
}

// A comma is a letter to the URL standard; here it is a list that was not split.
const PATTERN = /^(?<host>\*|(?:\*\.)?[^\s*:,;/@?#\\[\]]+|\[[\da-f:.]+\])(?::(?<port>\d{1,5}))?$/i
const EXPECTED = 'a host such as api.example.com, *.example.com, 127.0.0.1 or [::1], with :port or without, or *'

/**
 * `api.example.com` is that host on any port, `api.example.com:8443` on that one only, `*.example.com` every name below
 * it but not itself, `*` every host there is. Compared are hosts as the URL standard reads them, so no other spelling
 * of an address passes by or is kept out. Whether what a name resolves to may be called is not decided here.
 *
 * @throws RangeError for anything else, so that a misspelt list stops the process and not a schedule
 */
export function parseHostPattern(text: string): HostPattern {
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
  // An address has no names below it; whoever writes this means a network.
  return address === undefined ? { matches: (name) => name.endsWith(`.${known}`), address } : undefined
}

/** Lower case and canonical already; `example.com.` is the same host as `example.com`. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

/** The address that a URL names instead of a host name. */
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
