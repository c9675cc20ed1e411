import { CADENCE_LIMITS } from '../limits.ts'

/** The closed list of codes: clients may switch on it. */
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

/** One error in an input. */
export interface Problem {
  readonly code: ProblemCode
  /** Path inside the input, such as `expression` or `exdates[3]`; empty for the whole input. */
  readonly field: string
  /** Zero-based offset into the text of the field. */
  readonly position?: number
  readonly expected: string
  readonly found: string
  /** `expected …, got …`, with the position if there is one. It does not repeat `field`. */
  readonly message: string
}

const QUOTED_MAX_LENGTH = 60

/** Renders a value for a message: shortened, on one line, safe to print in a terminal. */
export function quote(value: unknown): string {
  if (typeof value === 'string') return `"${escapeText(value)}"`
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'undefined') return 'nothing'
  if (typeof value === 'object') return kindOfObject(value)
  return `a ${typeof value}`
}

/** `Array.isArray` throws for a revoked proxy. */
function kindOfObject(value: object): string {
  try {
    return Array.isArray(value) ? 'a list' : 'an object'
  } catch {
    return 'an object that cannot be read'
  }
}

/** Escapes control characters, bidirectional overrides and lone surrogates, which must not reach a log or a terminal. */
export function escapeText(text: string): string {
  const short = text.length > QUOTED_MAX_LENGTH ? `${text.slice(0, QUOTED_MAX_LENGTH)}…` : text
  return short.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu, (char) =>
    char === '"' || char === '\\' ? `\\${char}` : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
}

/** Collects problems while an input is read, so one answer reports all of them. */
export class ProblemList {
  readonly #problems: Problem[] = []

  add(code: ProblemCode, field: string, expected: string, found: string, position?: number): void {
    if (this.#problems.length >= CADENCE_LIMITS.problems) return
    const at = position === undefined ? '' : ` at position ${position}`
    const message = `expected ${expected}, got ${found}${at}`
    this.#problems.push({ code, field, ...(position === undefined ? {} : { position }), expected, found, message })
  }

  get isEmpty(): boolean {
    return this.#problems.length === 0
  }

  toArray(): Problem[] {
    return [...this.#problems]
  }
}
