import type { Json, Outcome } from '@carillon/core'

const WITHHELD = '(withheld)'

/** Removes the secret of the request from the outcome: some targets echo the request, and many people can read the ledger. */
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
    default:
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

/** A part of a text: `from` is its first character, `to` the one after its last. */
interface Span {
  readonly from: number
  readonly to: number
}

/** The fewest leading characters of a secret that are removed where a text was cut. Fewer reveal nothing and occur by chance. */
const BEGINNING_MIN_LENGTH = 6
/** An escaped character begins with one of these. */
const ESCAPES = '\\%&'
const HTML_NAMES = new Map([
  ['"', '&quot;'],
  ['&', '&amp;'],
  ["'", '&apos;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
])

/**
 * The texts that reveal a secret: the secret itself, and the base64 of any text that contains it, such as `Bearer <secret>` or
 * `<user>:<secret>`. Whole encodings come before their parts: removing only a part leaves a few bits of the secret at its ends.
 */
function repeatedTexts(secret: string): string[] {
  const encoded = [base64Of(`Bearer ${secret}`), base64Of(secret), ...[0, 1, 2].map((at) => base64Within(secret, at))]
  const inBothAlphabets = encoded.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
  return [...new Set([secret, ...inBothAlphabets])]
}

/**
 * Finds the next occurrence of a text in which each character may be escaped for JSON, a URL or HTML. The searched text may
 * have been cut off, so its end may hold only the beginning of an occurrence.
 */
function findRepeated(text: string, sought: string, from: number): Span | undefined {
  for (let at = from; at < text.length; at++) {
    const to = endOfRepeated(text, sought, at)
    if (to !== undefined) return { from: at, to }
  }
  return undefined
}

/**
 * Where the occurrence of `sought` that begins at `from` ends; undefined if none begins there. Follows all readings at once,
 * because `\\` may be two characters or one escaped character.
 */
function endOfRepeated(text: string, sought: string, from: number): number | undefined {
  let readings = [from]
  for (let index = 0; index < sought.length; index++) {
    const char = sought.charAt(index)
    if (index >= BEGINNING_MIN_LENGTH && readings.some((at) => isCutWithin(text, char, at))) return text.length
    readings = [...new Set(readings.flatMap((at) => endsOf(text, char, at)))]
    if (readings.length === 0) return undefined
  }
  return Math.max(...readings)
}

function endsOf(text: string, char: string, at: number): number[] {
  const plain = text[at] === char ? [at + 1] : []
  if (!ESCAPES.includes(text.charAt(at))) return plain
  const escaped = formsOf(char).filter((form) => text.startsWith(form, at))
  return [...plain, ...escaped.map((form) => at + form.length)]
}

function isCutWithin(text: string, char: string, at: number): boolean {
  if (at === text.length) return true
  if (!ESCAPES.includes(text.charAt(at))) return false
  const rest = text.slice(at, at + FORM_MAX_LENGTH)
  return (
    at + rest.length === text.length && formsOf(char).some((form) => form.length > rest.length && form.startsWith(rest))
  )
}

const FORMS = new Map<string, readonly string[]>()
const FORM_MAX_LENGTH = '&#x0000;'.length

function formsOf(char: string): readonly string[] {
  const known = FORMS.get(char)
  if (known !== undefined) return known
  const forms = makeForms(char)
  FORMS.set(char, forms)
  return forms
}

/** The escaped forms of a visible ASCII character in JSON, JavaScript, URLs and HTML. */
function makeForms(char: string): string[] {
  const code = char.charCodeAt(0)
  const lower = code.toString(16).padStart(2, '0')
  const hex = [...new Set([lower, lower.toUpperCase()])]
  const numbers = [`${code}`, `${code}`.padStart(3, '0')]
  return [
    ...(/[A-Za-z0-9]/.test(char) ? [] : [`\\${char}`]),
    ...hex.flatMap((digits) => [`\\u00${digits}`, `\\x${digits}`, `%${digits}`]),
    ...hex.flatMap((digits) => [`&#x${digits};`, `&#X${digits};`, `&#x00${digits};`]),
    ...[...new Set(numbers)].map((digits) => `&#${digits};`),
    ...[HTML_NAMES.get(char) ?? []].flat(),
  ]
}

function base64Of(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64')
}

/** The part of a longer text's base64 that depends only on `text`, which follows `bytesBefore` other bytes. */
function base64Within(text: string, bytesBefore: number): string {
  const encoded = base64Of(`${'\0'.repeat(bytesBefore)}${text}`)
  const bits = (bytesBefore + text.length) * 8
  // Base64 turns three bytes into four characters. Those that also depend on a byte before or after `text` are left out.
  return encoded.slice(Math.ceil((bytesBefore * 8) / 6), Math.floor(bits / 6))
}
