import type { z } from 'zod'

import type { FieldProblem } from './problem.ts'

/** A longer value is cut where a message shows it. */
const SHOWN_MAX_LENGTH = 60
/** A longer field name is cut. Every name of the contract, and every HTTP header that it accepts, is shorter. */
const NAME_MAX_LENGTH = 200

/** The message about a value of the wrong shape: `expected <what>, got <value>`. */
export function expectedText(what: string, value: unknown): string {
  return `expected ${what}, got ${foundText(value)}`
}

/** The same message as an option of a zod schema. */
export function expected(what: string): { error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => expectedText(what, input) }
}

/** A value as a message shows it: short, on one line, safe to print to a terminal. */
export function foundText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') return printable(JSON.stringify(shortened(value, SHOWN_MAX_LENGTH)))
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'an object'
  return `a ${typeof value}`
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The name of a field as the caller typed it, for a path or a message. */
export function foundName(name: string): string {
  return printable(JSON.stringify(shortened(name, NAME_MAX_LENGTH)).slice(1, -1))
}

/** The message about a field that the contract does not have. */
export function unknownFieldText(name: string): string {
  return `expected no such field, got "${foundName(name)}": leave it out, or correct its name`
}

/**
 * Everything that a schema found wrong, each problem once: a number can be out of range in two ways with one message.
 *
 * @param nameOf the name of a field, from its path within the input
 */
export function fieldProblems(error: z.ZodError, nameOf: (path: readonly string[]) => string): FieldProblem[] {
  const problems = new Map<string, FieldProblem>()
  const add = (path: readonly PropertyKey[], message: string): void => {
    const field = nameOf(path.map((step) => foundName(String(step))))
    problems.set(JSON.stringify([...path.map(String), message]), { field, message })
  }
  for (const issue of error.issues) {
    if (issue.code !== 'unrecognized_keys') add(issue.path, issue.message)
    else for (const key of issue.keys) add([...issue.path, key], unknownFieldText(key))
  }
  return [...problems.values()]
}

function shortened(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}

/** JSON.stringify has escaped controls below U+0020 and lone surrogates. This escapes what else can reverse text or break a line. */
function printable(text: string): string {
  return text.replace(/[\p{Cf}\p{Zl}\p{Zp}\u{7f}-\u{9f}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
