import type { FieldProblem } from '@carillon/api'

/** What goes wrong on this side of the wire. Closed, with an exit code each. */
export type CliErrorCode =
  | 'usage'
  | 'key_missing'
  | 'unreachable'
  | 'schedule_not_found'
  | 'name_ambiguous'
  | 'file_unreadable'
  | 'file_invalid'
  | 'output_unwritable'
  | 'not_confirmed'
  | 'timed_out'
  | 'interrupted'
  | 'unexpected'

interface CliErrorOptions extends ErrorOptions {
  readonly errors?: readonly FieldProblem[]
  /** What to do about it, if the message does not say. */
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

/** The command was not given as it has to be. */
export function usageError(message: string, advice?: string): CliError {
  return new CliError('usage', message, advice === undefined ? {} : { advice })
}
