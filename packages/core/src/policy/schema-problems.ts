import type { z } from 'zod'

import type { Problem } from '../problem.ts'
import { foundName } from './found-text.ts'

/** What a schema found wrong, as problems of the input that is known as `root` to whoever wrote it. */
export function schemaProblems(error: z.ZodError, root: string): Problem[] {
  const problems = error.issues.flatMap((issue) => {
    const path = [root, ...issue.path.map(String)].join('.')
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    return issue.keys.map((key) => ({
      path: `${path}.${foundName(key)}`,
      message: `expected no such field, got "${foundName(key)}": leave it out, or correct its name`,
    }))
  })
  // A number may be out of range in two ways at once; whoever has to mend it needs to hear it once.
  return [...new Map(problems.map((problem) => [`${problem.path} ${problem.message}`, problem])).values()]
}
