import { expectedText, URL_MAX_LENGTH } from '@carillon/api'
import { LRUCache } from 'lru-cache'

import { URL_CACHE } from './destinations.ts'
import { addressOf } from './guard/hosts.ts'

// Excludes `*`: the URL standard allows it as a host, but in the scope of a grant it stands for every host.
const HOST_NAME = /^(?=.{1,254}$)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?$/

export type UrlReading = { readonly ok: true; readonly href: string } | { readonly ok: false; readonly message: string }

/**
 * Reads a URL that a user wrote and returns its canonical form. A module stores, shows and calls this form, so a look-alike in
 * another alphabet shows as `xn--…`. An address has one accepted spelling: `http://2130706433` would hide from a reader which
 * host it is.
 */
export function readUrl(text: string): UrlReading {
  const known = accepted.get(text)
  if (known !== undefined) return known
  const reading = parseUrl(text)
  if (reading.ok) accepted.set(text, reading)
  return reading
}

/** The accepted URLs. Cached, because a spec is parsed before each attempt and its URL takes most of that time. */
const accepted = new LRUCache<string, UrlReading>(URL_CACHE)

function parseUrl(text: string): UrlReading {
  const expected = expectationMissed(text)
  if (expected !== undefined) return refuse(expected, text)
  const url = URL.parse(text)
  if (url === null || url.port === '0') return refuse('a URL with a valid host and port', text)
  const plain = plainAddress(url)
  if (plain === undefined && !HOST_NAME.test(url.hostname)) {
    return refuse('a host of letters, digits and hyphens, in parts of 1 to 63 between dots', text)
  }
  if (plain !== undefined && plain !== writtenHost(text)) {
    return refuse(`the address in its plain form (${plain})`, text)
  }
  if (url.href.length > URL_MAX_LENGTH) return refuse(`at most ${URL_MAX_LENGTH} characters once encoded`, text)
  return { ok: true, href: url.href }
}

/**
 * What was expected of the text, if it has a fault that the URL standard's parser would accept or repair silently. Carillon
 * calls only what the user wrote.
 */
function expectationMissed(text: string): string | undefined {
  if (text.length > URL_MAX_LENGTH) return `at most ${URL_MAX_LENGTH} characters`
  if (/[\p{Cc}\p{Z}\\]/u.test(text)) return 'a URL without blanks, control characters and backslashes'
  const authority = writtenAuthority(text)
  if (authority === undefined) return 'a URL that begins with http:// or https:// and a host'
  if (authority.includes('@')) return 'a URL without credentials: none is kept on a schedule'
  if (authority.includes('%')) return 'a host as it is, without percent-encoding and without a zone'
  if (text.includes('#')) return 'a URL without a fragment: it is never sent'
  return undefined
}

/** The address of a URL in its accepted spelling; undefined for a host name. */
function plainAddress(url: URL): string | undefined {
  const address = addressOf(url)
  // An IPv4-mapped address is another spelling of the IPv4 address.
  return address?.kind() === 'ipv4' ? address.toString() : address && url.hostname
}

function writtenHost(text: string): string | undefined {
  return writtenAuthority(text)?.replace(/:\d*$/, '')
}

function writtenAuthority(text: string): string | undefined {
  return /^https?:\/\/(?<authority>[^/?#]+)/i.exec(text)?.groups?.['authority']
}

function refuse(expected: string, text: string): UrlReading {
  // The text before an @ may be a password.
  return { ok: false, message: expectedText(expected, text.replace(/\/\/[^/?#]*@/, '//…@')) }
}
