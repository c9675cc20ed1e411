import { found, type Fault } from './fault.ts'

const HEADERS_MAX = 50
const NAME_MAX_LENGTH = 128
const VALUE_MAX_LENGTH = 4096
/** Names and values together. Node's servers take 16 kB with the request line and what Carillon adds. */
const TOTAL_MAX_LENGTH = 8192

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Visible ASCII, blanks only inside: others are trimmed or read differently from server to server. */
const VALUE = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/

const OURS = 'Carillon sets it'
const FRAMING = 'it belongs to the connection'
const CREDENTIAL = 'no credential is kept on a schedule (I8); name a secret in `auth`'
const ORIGIN = 'it says who is calling'
const CODING = 'bodies are sent and read as they are'

/** Why a schedule may not set a header, by its lower-case name; with a `*` at the end, all that begin so. */
export const RESERVED_HEADERS: Readonly<Record<string, string>> = {
  'idempotency-key': OURS,
  'carillon-*': OURS,
  traceparent: OURS,
  tracestate: OURS,
  // Where the signature stands, as Standard Webhooks says.
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
  // No list of these can be complete; it names those that people reach for.
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
    yield { path: [], message: `Expected an object of names and texts, but found ${found(headers)}.` }
    return
  }
  const entries = Object.entries(headers) as [string, unknown][]
  if (entries.length > HEADERS_MAX) {
    yield { path: [], message: `Expected at most ${HEADERS_MAX} headers, but found ${entries.length}.` }
    return
  }
  const seen = new Set<string>()
  let length = 0
  for (const [name, value] of entries) {
    const reason = nameFault(name, seen) ?? valueFault(value)
    if (reason !== undefined) yield { path: [name], message: reason }
    length += name.length + (typeof value === 'string' ? value.length : 0)
  }
  if (length > TOTAL_MAX_LENGTH) {
    yield { path: [], message: `Expected at most ${TOTAL_MAX_LENGTH} characters in all headers, but found ${length}.` }
  }
}

function nameFault(name: string, seen: Set<string>): string | undefined {
  if (name.length > NAME_MAX_LENGTH || !TOKEN.test(name)) {
    return `Expected a header name of 1 to ${NAME_MAX_LENGTH} letters, digits and hyphens, but found ${found(name)}.`
  }
  // CGI and WSGI make one name of `Carillon_Attempt` and `Carillon-Attempt`.
  const plain = name.toLowerCase().replaceAll('_', '-')
  const reason = reservedBecause(plain)
  if (reason !== undefined) return `Expected a header that a schedule may set, but found ${found(name)}: ${reason}.`
  if (seen.has(plain)) return `Expected each header once, but found ${found(name)} again in other letters.`
  seen.add(plain)
  return undefined
}

function valueFault(value: unknown): string | undefined {
  if (typeof value === 'string' && value.length <= VALUE_MAX_LENGTH && VALUE.test(value)) return undefined
  // The value itself is not shown: it may be a secret in the wrong place.
  const what = typeof value === 'string' ? 'another text' : found(value)
  return `Expected at most ${VALUE_MAX_LENGTH} visible ASCII characters, blanks only inside, but found ${what}.`
}

function reservedBecause(name: string): string | undefined {
  if (Object.hasOwn(RESERVED_HEADERS, name)) return RESERVED_HEADERS[name]
  const prefix = RESERVED_PREFIXES.find((start) => name.startsWith(start))
  return prefix === undefined ? undefined : RESERVED_HEADERS[`${prefix}*`]
}
