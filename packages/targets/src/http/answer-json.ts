import type { Json } from '@carillon/core'

import { headerOf, type Answer } from './exchange.ts'
import { isStorable } from './json-value.ts'

const JSON_MEDIA_TYPE = /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i
const LOCATION_MAX_LENGTH = 2048
/** Making one costs more than what it reads here. */
const WHOLE = new TextDecoder()

/** An answer as the ledger keeps it: `{ status, body?, truncated?, location? }`. */
export function answerJson(answer: Answer): Json {
  const json: Record<string, Json> = { status: answer.status }
  const location = headerOf(answer, 'location')
  if (answer.body.length > 0) json['body'] = bodyJson(answer)
  if (answer.isCut) json['truncated'] = true
  if (location !== undefined) json['location'] = storable(location.slice(0, LOCATION_MAX_LENGTH))
  return json
}

/** JSON where the whole body is kept and is read without loss, otherwise its text. */
function bodyJson(answer: Answer): Json {
  // As a stream, so that a character cut in two is dropped and not replaced.
  const text = answer.isCut ? new TextDecoder().decode(answer.body, { stream: true }) : WHOLE.decode(answer.body)
  if (!answer.isCut && JSON_MEDIA_TYPE.test(headerOf(answer, 'content-type') ?? '')) {
    const value = parseJson(text)
    if (value !== undefined && isStorable(value)) return value
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

/** Without the one character that no text of Postgres can hold. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
}
