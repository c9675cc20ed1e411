import { STATUS_CODES } from 'node:http'

import type { Json, OutboundAnswer, OutboundEnd, OutboundRefusal, Outcome } from '@carillon/core'
import { headerOf } from '@carillon/outbound'

import { isStorableJson } from './json-value.ts'

export interface OutcomeClock {
  readonly now: () => number
  /** The longest wait that a Retry-After can ask for. A longer one is shortened to this. */
  readonly retryAfterMaxMs: number
}

/** The outcome of an attempt. */
export function outcomeOf(end: OutboundEnd, clock: OutcomeClock): Outcome {
  switch (end.kind) {
    case 'aborted':
      return { kind: 'cancelled' }
    case 'answered':
      return outcomeOfAnswer(end.answer, clock)
    case 'broken':
      // An error status counts even if the body is incomplete. A success counts only with its complete body.
      return end.answer === undefined || isSuccess(end.answer)
        ? outcomeOfError(end.error)
        : outcomeOfAnswer(end.answer, clock)
    case 'refused':
      return outcomeOfRefusal(end.refusal)
    case 'malformed':
      // A spec that passes our checks but not those of the client can never be sent.
      return {
        kind: 'malformed',
        error: { code: 'invalid_request', message: `expected a valid request, got an invalid one: ${end.message}` },
      }
  }
}

export function outcomeOfRefusal({ code, message }: OutboundRefusal): Outcome {
  return { kind: 'failed', error: { code, message: `${message}; nothing was sent` }, retryable: false }
}

function outcomeOfAnswer(answer: OutboundAnswer, clock: OutcomeClock): Outcome {
  const { status } = answer
  if (isSuccess(answer)) return { kind: 'succeeded', result: answerJson(answer) }
  const reason = STATUS_CODES[status]
  const said = `expected an answer with a 2xx status, got ${status}${reason === undefined ? '' : ` ${reason}`}`
  if (status >= 300 && status < 400) {
    // By a redirect the target could send the request, with its key and payload, to a host that is not allowed.
    const message = `${said}: redirects are not followed; name the final URL`
    return { kind: 'failed', error: { code: 'redirect', message, detail: answerJson(answer) }, retryable: false }
  }
  const error = { code: 'http_status', message: said, detail: answerJson(answer) }
  if (!isRetryable(status)) return { kind: 'failed', error, retryable: false }
  const asked = headerOf(answer, 'retry-after')
  const wait = asked === undefined ? undefined : retryAfterMs(asked, clock.now(), clock.retryAfterMaxMs)
  return { kind: 'failed', error, retryable: true, ...(wait === undefined ? {} : { retryAfterMs: wait }) }
}

function outcomeOfError(error: Error): Outcome {
  const code = codeOf(error)
  const message = `expected a complete answer, got a network error: ${code ?? error.name}`
  const detail = { cause: code ?? error.name }
  return { kind: 'failed', error: { code: 'network', message, detail }, retryable: true }
}

function isSuccess({ status }: OutboundAnswer): boolean {
  return status >= 200 && status < 300
}

function isRetryable(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500
}

function codeOf(error: Error & { readonly code?: unknown }): string | undefined {
  return typeof error.code === 'string' ? error.code : undefined
}

const JSON_MEDIA_TYPE = /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i
const LOCATION_MAX_LENGTH = 2048
/** Shared, because creating one costs more than decoding a short body. */
const WHOLE = new TextDecoder()

/** An answer as the ledger stores it: `{ status, body?, truncated?, location? }`. */
function answerJson(answer: OutboundAnswer): Json {
  const json: Record<string, Json> = { status: answer.status }
  const location = headerOf(answer, 'location')
  if (answer.body.length > 0) json['body'] = bodyJson(answer)
  if (answer.isCut) json['truncated'] = true
  if (location !== undefined) json['location'] = storable(location.slice(0, LOCATION_MAX_LENGTH))
  return json
}

/** The body as JSON if its media type says so, all of it was kept, and Postgres can store it unchanged; otherwise as text. */
function bodyJson(answer: OutboundAnswer): Json {
  // Decodes as a stream, which drops a character that was cut in two and does not replace it.
  const text = answer.isCut ? new TextDecoder().decode(answer.body, { stream: true }) : WHOLE.decode(answer.body)
  if (!answer.isCut && JSON_MEDIA_TYPE.test(headerOf(answer, 'content-type') ?? '')) {
    const value = parseJson(text)
    if (value !== undefined && isStorableJson(value)) return value
  }
  return storable(text)
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Replaces U+0000, the one character that Postgres cannot store in a text. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}

const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850 = /^[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * The milliseconds that a Retry-After asks to wait, at most `maxMs`. Its value is a number of seconds, or one of the three
 * forms of an HTTP date (RFC 9110, 5.6.7). Undefined for anything else, and for a date in the past.
 */
function retryAfterMs(value: string, now: number, maxMs: number): number | undefined {
  const wait = /^\d+$/.test(value) ? Number(value) * 1000 : httpDate(value) - now
  // Many digits parse as Infinity.
  return wait >= 0 ? Math.min(wait, maxMs) : undefined
}

/**
 * Epoch milliseconds of a date in one of HTTP's three forms; NaN for any other text. `Date.parse` alone accepts almost anything,
 * and takes the `asctime` form for local time.
 */
function httpDate(value: string): number {
  if (IMF_FIXDATE.test(value) || RFC_850.test(value)) return Date.parse(value)
  return ASCTIME.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
}
