/** A part of a text, from its first character to the one after its last. */
interface Span {
  readonly from: number
  readonly to: number
}

/** So few characters tell nothing, and would be taken out of texts that hold them by chance. */
const BEGINNING_MIN_LENGTH = 6
/** Where an escaped character begins. */
const ESCAPES = '\\%&'
const HTML_NAMES = new Map([
  ['"', '&quot;'],
  ['&', '&amp;'],
  ["'", '&apos;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
])

/**
 * What to look for in an answer to somebody who was sent this secret: itself, and base64 of anything that it is a part of, such
 * as `Bearer <secret>` or `<user>:<secret>`. Whole encodings come first: what is left of a part is a few bits at its ends.
 */
export function repeatedTexts(secret: string): string[] {
  const encoded = [base64Of(`Bearer ${secret}`), base64Of(secret), ...[0, 1, 2].map((at) => base64Within(secret, at))]
  const inBothAlphabets = encoded.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')])
  return [...new Set([secret, ...inBothAlphabets])]
}

/**
 * Where a text next holds another one, of which each character may be as it is or escaped for JSON, a URL or HTML. A text is cut
 * somewhere, and that may be within: its end may hold the beginning only.
 */
export function findRepeated(text: string, sought: string, from: number): Span | undefined {
  for (let at = from; at < text.length; at++) {
    const to = endOfRepeated(text, sought, at)
    if (to !== undefined) return { from: at, to }
  }
  return undefined
}

/** Follows all readings at once: of `\\` nobody knows whether it is two characters or one that was escaped. */
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

/** How JSON, JavaScript, URLs and HTML write a visible character of ASCII other than by itself. */
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

/** What base64 of a longer text has of this one, wherever that holds it: three bytes become four characters. */
function base64Within(text: string, bytesBefore: number): string {
  const encoded = base64Of(`${'\0'.repeat(bytesBefore)}${text}`)
  const bits = (bytesBefore + text.length) * 8
  // The characters that the bytes before or behind have a share in are theirs.
  return encoded.slice(Math.ceil((bytesBefore * 8) / 6), Math.floor(bits / 6))
}
