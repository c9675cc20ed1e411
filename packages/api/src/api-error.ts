import type { FieldProblem, Problem, ProblemCode } from './problem.ts'

/** What the service answered instead of what was asked for. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ProblemCode
  readonly errors: readonly FieldProblem[]
  /** Seconds after which asking again may help; null if the service did not say. */
  readonly retryAfterSeconds: number | null

  constructor(problem: Pick<Problem, 'code' | 'status' | 'detail' | 'errors'>, retryAfterSeconds: number | null) {
    super(problem.detail)
    this.status = problem.status
    this.code = problem.code
    this.errors = problem.errors
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Nobody answered, or not as this service does. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
}
