import type { IncomingHttpHeaders } from 'node:http'

/**
 * Whether a page of this very service made the request: a browser sends its cookie along whoever asks, and only these
 * headers, which no page can forge, tell whom. Without either the answer is no.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') return false
  if (origin === undefined) return site !== undefined
  return host !== undefined && URL.parse(origin)?.host === host.toLowerCase()
}
