import { PROBLEM_TYPES, type FieldProblem, type ProblemCode } from '@carillon/api'

interface ProblemOptions extends ErrorOptions {
  readonly errors?: readonly FieldProblem[]
  /** Of the answer, besides those that every problem of this kind has. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What a request is answered instead of what it asked for. The message is the `detail`: it goes to whoever asked. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ProblemCode
  readonly errors: readonly FieldProblem[]
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ProblemCode, detail: string, { errors = [], headers = {}, ...options }: ProblemOptions = {}) {
    super(detail, options)
    this.code = code
    this.errors = errors
    this.headers = headers
  }

  get status(): number {
    return PROBLEM_TYPES[this.code].status
  }
}

/** A request of which some fields are wrong; the first is told in the detail as well. */
export function invalidInput(errors: readonly FieldProblem[]): ProblemError {
  const [first] = errors
  const rest = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const detail = first === undefined ? 'the request is wrong' : `${first.field || 'body'}: ${first.message}${rest}`
  return new ProblemError('invalid_input', detail, { errors })
}
