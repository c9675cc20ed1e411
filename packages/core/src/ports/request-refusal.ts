import type { FieldProblem, ProblemCode } from '@carillon/api'

interface RequestRefusalOptions extends ErrorOptions {
  /** The fields at fault. */
  readonly errors?: readonly FieldProblem[]
  /** Headers of the answer, such as `www-authenticate`. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Refuses a request: what the handler of a module throws. The code is one of those that its operation lists in `problems`, and the message
 * is what the caller reads. Any other error of a handler, except a CarillonError, is answered as an error in the server.
 */
export class RequestRefusal extends Error {
  override readonly name = 'RequestRefusal'
  readonly code: ProblemCode
  readonly errors: readonly FieldProblem[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ProblemCode,
    detail: string,
    { errors = [], headers = {}, ...options }: RequestRefusalOptions = {},
  ) {
    super(detail, options)
    this.code = code
    this.errors = errors
    this.headers = headers
  }

  /** True also for a refusal of another copy of this package, which a module may have installed beside the server's. */
  static isRefusal(error: unknown): error is RequestRefusal {
    return error instanceof Error && error.name === 'RequestRefusal' && 'code' in error && 'headers' in error
  }
}
