import { foundName, foundText } from '@carillon/cadence/words'
import type { z } from 'zod'

import type { FieldProblem } from './problem.ts'

/** The message about a value of the wrong shape: `expected <what>, got <value>`. */
export function expectedText(what: string, value: unknown): string {
  return `expected ${what}, got ${foundText(value)}`
}

/** The same message as an option of a zod schema. */
export function expected(what: string): { error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => expectedText(what, input) }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
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
