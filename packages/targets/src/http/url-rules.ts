import { found } from './fault.ts'

const URL_MAX_LENGTH = 2048

export type UrlReading = { readonly ok: true; readonly href: string } | { readonly ok: false; readonly message: string }

/**
 * Reads a URL that an HTTP target may name, in its canonical form: what is stored and shown is what is called, so
 * `http://2130706433` reads `http://127.0.0.1/` and a look-alike of another alphabet shows as `xn--…`.
 */
export function readUrl(text: string): UrlReading {
  const expected = expectationMissed(text)
  if (expected !== undefined) return refuse(expected, text)
  const url = URL.parse(text)
  if (url === null || url.port === '0') return refuse('a URL with a valid host and port', text)
  if (url.href.length > URL_MAX_LENGTH) return refuse(`at most ${URL_MAX_LENGTH} characters once encoded`, text)
  return { ok: true, href: url.href }
}

/** Of what the standard's parser would forgive or repair in silence: what a person did not write is not called. */
function expectationMissed(text: string): string | undefined {
  if (text.length > URL_MAX_LENGTH) return `at most ${URL_MAX_LENGTH} characters`
  if (/[\p{Cc}\p{Z}\\]/u.test(text)) return 'a URL without blanks, control characters and backslashes'
  const authority = /^https?:\/\/(?<authority>[^/?#]+)/i.exec(text)?.groups?.['authority']
  if (authority === undefined) return 'a URL that begins with http:// or https:// and a host'
  if (authority.includes('@')) return 'a URL without credentials: none is kept on a schedule'
  if (text.includes('#')) return 'a URL without a fragment: it is never sent'
  return undefined
}

function refuse(expected: string, text: string): UrlReading {
  // What stands before an @ may be a password.
  return { ok: false, message: `Expected ${expected}, but found ${found(text.replace(/\/\/[^/?#]*@/, '//…@'))}.` }
}
