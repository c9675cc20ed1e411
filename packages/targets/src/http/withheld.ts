import type { Json, Outcome } from '@carillon/core'

const WITHHELD = '(withheld)'

/** An outcome without a secret that was sent: some targets answer with what they were asked, and the ledger is read by many. */
export function withheldFrom(outcome: Outcome, secret: string): Outcome {
  switch (outcome.kind) {
    case 'succeeded':
      return { ...outcome, result: withheldFromJson(outcome.result, secret) }
    case 'failed':
    case 'malformed': {
      const { detail } = outcome.error
      if (detail === undefined) return outcome
      return { ...outcome, error: { ...outcome.error, detail: withheldFromJson(detail, secret) } }
    }
    case 'cancelled':
      return outcome
  }
}

function withheldFromJson(value: Json, secret: string): Json {
  if (typeof value === 'string') return withheldFromText(value, secret)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => withheldFromJson(item, secret))
  const entries = Object.entries(value).map(([key, item]): [string, Json] => [
    withheldFromText(key, secret),
    withheldFromJson(item, secret),
  ])
  return Object.fromEntries(entries)
}

function withheldFromText(text: string, secret: string): string {
  return withoutBeginning(text.replaceAll(secret, WITHHELD), secret)
}

/** A body is cut somewhere, and that may be within the secret. */
function withoutBeginning(text: string, secret: string): string {
  for (let length = Math.min(secret.length - 1, text.length); length >= BEGINNING_MIN_LENGTH; length--) {
    if (text.endsWith(secret.slice(0, length))) return `${text.slice(0, -length)}${WITHHELD}`
  }
  return text
}

// So little of it tells nothing, and would be taken out of texts that hold it by chance.
const BEGINNING_MIN_LENGTH = 6
