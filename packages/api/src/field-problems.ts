import type { z } from 'zod'

import { foundName } from './expected.ts'
import type { FieldProblem } from './problem.ts'

/**
 * What a schema found wrong, field by field, each thing once.
 *
 * @param nameOf what whoever wrote the request calls a place in it
 */
export function fieldProblems(error: z.ZodError, nameOf: (path: readonly string[]) => string): FieldProblem[] {
  const problems = error.issues.flatMap((issue) => {
    const path = issue.path.map((step) => foundName(String(step)))
    if (issue.code !== 'unrecognized_keys') return [{ field: nameOf(path), message: issue.message }]
    return issue.keys.map((key) => ({
      field: nameOf([...path, foundName(key)]),
      message: `expected no such field, got "${foundName(key)}": leave it out, or correct its name`,
    }))
  })
  return [...new Map(problems.map((problem) => [`${problem.field} ${problem.message}`, problem])).values()]
}
