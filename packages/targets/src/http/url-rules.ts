import { found } from './fault.ts'
import { addressOf } from './host-pattern.ts'
import { RecentTexts } from './recent-texts.ts'

const URL_MAX_LENGTH = 2048
// Also keeps out `*`, which is a host to the URL standard and every host to a grant.
const HOST_NAME = /^(?=.{1,254}$)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?$/

export type UrlReading = { readonly ok: true; readonly href: string } | { readonly ok: false; readonly message: string }

/**
 * Reads a URL that an HTTP target may name, in its canonical form: what is stored and shown is what is called, so a
 * look-alike of another alphabet shows as `xn--…`. An address has one spelling, and the others are refused: whoever writes
 * `http://2130706433` hides from a reader where it leads.
 */
export function readUrl(text: string): UrlReading {
  const known = accepted.get(text)
  if (known !== undefined) return known
  const reading = readAnew(text)
  if (reading.ok) accepted.set(text, reading)
  return reading
}

/** A spec is read again before each attempt, and its URL takes most of that. Some 2 kB each at most. */
const accepted = new RecentTexts<UrlReading>({ count: 2000, textMaxLength: 500 })

function readAnew(text: string): UrlReading {
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

/** Of what the standard's parser would forgive or repair in silence: what a person did not write is not called. */
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

/** As a URL writes it; undefined for a host that is a name. */
function plainAddress(url: URL): string | undefined {
  const address = addressOf(url)
  // An IPv4 address in the clothes of IPv6 is a spelling of it like the others.
  return address?.kind() === 'ipv4' ? address.toString() : address && url.hostname
}

function writtenHost(text: string): string | undefined {
  return writtenAuthority(text)?.replace(/:\d*$/, '')
}

function writtenAuthority(text: string): string | undefined {
  return /^https?:\/\/(?<authority>[^/?#]+)/i.exec(text)?.groups?.['authority']
}

function refuse(expected: string, text: string): UrlReading {
  // What stands before an @ may be a password.
  return { ok: false, message: `Expected ${expected}, but found ${found(text.replace(/\/\/[^/?#]*@/, '//…@'))}.` }
}
