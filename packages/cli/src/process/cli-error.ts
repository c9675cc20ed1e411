import type { FieldProblem } from '@carillon/api'

/** The errors that the CLI itself raises. Errors that the server answers with have codes of their own. */
export type CliErrorCode =
  | 'usage'
  | 'key_missing'
  | 'unreachable'
  | 'schedule_not_found'
  | 'name_ambiguous'
  | 'file_unreadable'
  | 'file_invalid'
  | 'file_exists'
  | 'file_unwritable'
  | 'output_unwritable'
  | 'not_confirmed'
  | 'timed_out'
  | 'interrupted'
  | 'unexpected'

interface CliErrorOptions extends ErrorOptions {
  readonly errors?: readonly FieldProblem[]
  /** What the user can do, if the message does not say it. */
  readonly advice?: string
}

export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: CliErrorCode
  readonly errors: readonly FieldProblem[]
  readonly advice: string | null

  constructor(code: CliErrorCode, message: string, { errors = [], advice, ...options }: CliErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.errors = errors
    this.advice = advice ?? null
  }
}

/** The arguments of a command are wrong. */
export function usageError(message: string, advice?: string): CliError {
  return new CliError('usage', message, advice === undefined ? {} : { advice })
}
