import type { Json, Outcome } from '@carillon/core'

import { findRepeated, repeatedTexts } from './repeated-secret.ts'

const WITHHELD = '(withheld)'

/** An outcome without a secret that was sent: some targets answer with what they were asked, and the ledger is read by many. */
export function withheldFrom(outcome: Outcome, secret: string): Outcome {
  const sought = repeatedTexts(secret)
  switch (outcome.kind) {
    case 'succeeded':
      return { ...outcome, result: withheldFromJson(outcome.result, sought) }
    case 'failed':
    case 'malformed': {
      const { detail } = outcome.error
      if (detail === undefined) return outcome
      return { ...outcome, error: { ...outcome.error, detail: withheldFromJson(detail, sought) } }
    }
    case 'cancelled':
      return outcome
  }
}

function withheldFromJson(value: Json, sought: readonly string[]): Json {
  if (typeof value === 'string') return withheldFromText(value, sought)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => withheldFromJson(item, sought))
  const entries = Object.entries(value).map(([key, item]): [string, Json] => [
    withheldFromText(key, sought),
    withheldFromJson(item, sought),
  ])
  return Object.fromEntries(entries)
}

function withheldFromText(text: string, sought: readonly string[]): string {
  return sought.reduce(withoutRepeated, text)
}

function withoutRepeated(text: string, sought: string): string {
  let kept = ''
  for (let from = 0; ;) {
    const found = findRepeated(text, sought, from)
    if (found === undefined) return kept + text.slice(from)
    kept += text.slice(from, found.from) + WITHHELD
    from = found.to
  }
}
