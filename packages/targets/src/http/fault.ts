import type { z } from 'zod'

/** One thing that is wrong below a field of a spec. */
export interface Fault {
  /** From the field on; empty for the field itself. */
  readonly path: readonly (string | number)[]
  /** One sentence: what was expected, what was found. */
  readonly message: string
}

// A list this long tells everything that a person will read.
const FAULTS_MAX = 50

/** A refinement that tells every fault which a pure function finds. */
export function refusing(faultsOf: (value: unknown) => Iterable<Fault>) {
  return (value: unknown, context: z.core.$RefinementCtx): void => {
    let told = 0
    for (const { path, message } of faultsOf(value)) {
      if (told++ === FAULTS_MAX) return
      context.addIssue({ code: 'custom', path: [...path], message })
    }
  }
}

const FOUND_MAX_LENGTH = 60

/** Shows a value in a message: short, on one line, harmless in a log or a terminal. */
export function found(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function quoted(text: string): string {
  const short = text.length > FOUND_MAX_LENGTH ? `${text.slice(0, FOUND_MAX_LENGTH)}…` : text
  const harmless = short.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}"\\]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  )
  return `"${harmless}"`
}
