import { expectedText, foundText, HTTP_HEADERS } from '@carillon/api'

import type { Fault } from './json-value.ts'

const { maxCount, nameMaxLength, valueMaxLength, totalMaxLength } = HTTP_HEADERS

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Visible ASCII, blanks only inside: servers differ in how they trim or read anything else. */
const VALUE = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/

const OURS = 'Carillon sets it'
const FRAMING = 'it belongs to the connection'
const CREDENTIAL = 'a schedule holds no credential; name a secret in `auth`'
const ORIGIN = 'it says who is calling'
const CODING = 'bodies are sent and read as they are'

/** Why a schedule may not set a header, by its lower-case name. A name that ends with `*` is a prefix. */
export const RESERVED_HEADERS: Readonly<Record<string, string>> = {
  'idempotency-key': OURS,
  'carillon-*': OURS,
  traceparent: OURS,
  tracestate: OURS,
  // The signature of Standard Webhooks.
  'webhook-*': OURS,
  host: FRAMING,
  'content-length': FRAMING,
  'transfer-encoding': FRAMING,
  connection: FRAMING,
  'keep-alive': FRAMING,
  upgrade: FRAMING,
  te: FRAMING,
  trailer: FRAMING,
  expect: FRAMING,
  'http2-settings': FRAMING,
  'accept-encoding': CODING,
  'content-encoding': CODING,
  forwarded: ORIGIN,
  via: ORIGIN,
  'x-forwarded-*': ORIGIN,
  'x-real-ip': ORIGIN,
  // The common headers that carry credentials. No such list can be complete.
  'proxy-*': CREDENTIAL,
  authorization: CREDENTIAL,
  cookie: CREDENTIAL,
  'api-key': CREDENTIAL,
  'x-api-key': CREDENTIAL,
  'x-auth-token': CREDENTIAL,
  'x-access-token': CREDENTIAL,
  'x-goog-api-key': CREDENTIAL,
  'x-amz-security-token': CREDENTIAL,
  'private-token': CREDENTIAL,
}

const RESERVED_PREFIXES = Object.keys(RESERVED_HEADERS)
  .filter((name) => name.endsWith('*'))
  .map((name) => name.slice(0, -1))

/** Everything wrong with the headers of a spec. */
export function* headerFaults(headers: unknown): Generator<Fault> {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    yield { path: [], message: expectedText('an object of names and texts', headers) }
    return
  }
  const entries = Object.entries(headers) as [string, unknown][]
  if (entries.length > maxCount) {
    yield { path: [], message: `expected at most ${maxCount} headers, got ${entries.length}` }
    return
  }
  const seen = new Set<string>()
  let length = 0
  for (const [name, value] of entries) {
    const reason = nameFault(name, seen) ?? valueFault(value)
    if (reason !== undefined) yield { path: [name], message: reason }
    length += name.length + (typeof value === 'string' ? value.length : 0)
  }
  if (length > totalMaxLength) {
    yield { path: [], message: `expected at most ${totalMaxLength} characters in all headers, got ${length}` }
  }
}

function nameFault(name: string, seen: Set<string>): string | undefined {
  if (name.length > nameMaxLength || !TOKEN.test(name)) {
    return expectedText(`a header name of 1 to ${nameMaxLength} letters, digits and hyphens`, name)
  }
  // CGI and WSGI do not distinguish `Carillon_Attempt` from `Carillon-Attempt`.
  const plain = name.toLowerCase().replaceAll('_', '-')
  const reason = reservedBecause(plain)
  if (reason !== undefined) return `expected a header that a schedule may set, got ${foundText(name)}: ${reason}`
  if (seen.has(plain)) return `expected each header once, got ${foundText(name)} again in another spelling`
  seen.add(plain)
  return undefined
}

function valueFault(value: unknown): string | undefined {
  if (typeof value === 'string' && value.length <= valueMaxLength && VALUE.test(value)) return undefined
  // The value is not shown: it may be a secret in the wrong place.
  const what = typeof value === 'string' ? 'another text' : foundText(value)
  return `expected at most ${valueMaxLength} visible ASCII characters, blanks only inside, got ${what}`
}

function reservedBecause(name: string): string | undefined {
  if (Object.hasOwn(RESERVED_HEADERS, name)) return RESERVED_HEADERS[name]
  const prefix = RESERVED_PREFIXES.find((start) => name.startsWith(start))
  return prefix === undefined ? undefined : RESERVED_HEADERS[`${prefix}*`]
}
