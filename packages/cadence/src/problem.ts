/** Closed: clients may switch on it. */
export const PROBLEM_CODES = [
  'missing_field',
  'unknown_field',
  'wrong_type',
  'out_of_range',
  'too_long',
  'syntax',
  'unsupported',
  'unknown_timezone',
  'conflict',
  'never_fires',
  'too_frequent',
  'too_complex',
] as const

export type ProblemCode = (typeof PROBLEM_CODES)[number]

/** One thing that is wrong with an input. */
export interface Problem {
  readonly code: ProblemCode
  /** Path inside the input, such as `expression` or `exdates[3]`; empty for the input as a whole. */
  readonly field: string
  /** Zero-based offset into the field's text. */
  readonly position?: number
  readonly expected: string
  readonly found: string
  /** A sentence: what was expected and what was found. */
  readonly message: string
}

const QUOTED_MAX_LENGTH = 60

/** Shows a value in a message: short, on one line, harmless in a terminal. */
export function quote(value: unknown): string {
  if (typeof value === 'string') return `"${escape(value)}"`
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'undefined') return 'nothing'
  if (typeof value === 'object') return kindOfObject(value)
  return `a ${typeof value}`
}

/** A revoked proxy throws even when asked whether it is a list. */
function kindOfObject(value: object): string {
  try {
    return Array.isArray(value) ? 'a list' : 'an object'
  } catch {
    return 'an object that cannot be read'
  }
}

/** Control characters, bidirectional overrides and lone surrogates must not reach a log or a terminal as they are. */
export function escape(text: string): string {
  const short = text.length > QUOTED_MAX_LENGTH ? `${text.slice(0, QUOTED_MAX_LENGTH)}…` : text
  return short.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu, (char) =>
    char === '"' || char === '\\' ? `\\${char}` : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

// A list this long tells everything that a person will read.
const PROBLEMS_MAX = 50

/** Collects problems while an input is read, so that all of them are told at once. */
export class ProblemList {
  readonly #problems: Problem[] = []

  add(code: ProblemCode, field: string, expected: string, found: string, position?: number): void {
    if (this.#problems.length >= PROBLEMS_MAX) return
    const at = position === undefined ? '' : ` at position ${position}`
    const subject = field === '' ? 'the cadence' : `${field}${at}`
    const message = `In ${subject}, expected ${expected}, but found ${found}.`
    this.#problems.push({ code, field, ...(position === undefined ? {} : { position }), expected, found, message })
  }

  get isEmpty(): boolean {
    return this.#problems.length === 0
  }

  toArray(): Problem[] {
    return [...this.#problems]
  }
}
