import { CarillonError } from '@carillon/core'

import { carillonProblem, internalProblem, unavailableProblem } from './carillon-problems.ts'
import { frameworkProblem } from './framework-problems.ts'
import { ProblemError } from './problem-error.ts'
import { isUnreachableDatabase } from './unreachable-database.ts'

/** What a request is answered for whatever was thrown. Its cause goes to the log, never to whoever asked. */
export function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof CarillonError) return carillonProblem(error)
  if (!(error instanceof Error)) return internalProblem(error)
  const refused = frameworkProblem(error)
  if (refused !== undefined) return refused
  return isUnreachableDatabase(error) ? unavailableProblem(error) : internalProblem(error)
}
