/** Hosts that may be called, as an operator writes them. */
export interface HostPattern {
  matches(url: URL): boolean
}

// A comma is a letter to the URL standard; here it is a list that was not split.
const PATTERN = /^(?<host>\*|(?:\*\.)?[^\s*:,;/@?#\\[\]]+|\[[\da-f:.]+\])(?::(?<port>\d{1,5}))?$/i
const EXPECTED = 'a host such as api.example.com, *.example.com, 127.0.0.1 or [::1], with :port or without, or *'

/**
 * `api.example.com` is that host on any port, `api.example.com:8443` on that one only, `*.example.com` every name below
 * it but not itself, `*` every host there is. Compared are hosts as the URL standard reads them, so no other spelling
 * of an address passes by or is kept out. A name is compared as a name: what it resolves to is not looked at.
 *
 * @throws RangeError for anything else, so that a misspelt list stops the process and not a schedule
 */
export function parseHostPattern(text: string): HostPattern {
  const { host, port } = PATTERN.exec(text)?.groups ?? {}
  const portNumber = port === undefined ? undefined : Number(port)
  if (host === undefined || portNumber === 0 || (portNumber ?? 0) > 65_535) throw unreadable(text)
  const matchesHost = hostMatcher(host)
  if (matchesHost === undefined) throw unreadable(text)
  return {
    matches: (url) => (portNumber === undefined || portNumber === portOf(url)) && matchesHost(hostOf(url)),
  }
}

function hostMatcher(host: string): ((name: string) => boolean) | undefined {
  if (host === '*') return () => true
  const isWildcard = host.startsWith('*.')
  const url = URL.parse(`http://${isWildcard ? host.slice(2) : host}/`)
  if (url === null || url.hostname === '') return undefined
  const known = hostOf(url)
  if (!isWildcard) return (name) => name === known
  // An address has no names below it; whoever writes this means a network.
  return /^\d+\.\d+\.\d+\.\d+$/.test(known) ? undefined : (name) => name.endsWith(`.${known}`)
}

/** Lower case and canonical already; `example.com.` is the same host as `example.com`. */
function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

function unreadable(text: string): RangeError {
  return new RangeError(`expected ${EXPECTED}, got ${JSON.stringify(text)}`)
}
