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
