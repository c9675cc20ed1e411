import type { ProblemCode } from '@carillon/api'
import type { OperatorErrorCode } from '@carillon/server'

import type { CliErrorCode } from './cli-error.ts'

/** Every exit code and its meaning. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: 'success' },
  refused: { code: 1, meaning: 'failed or refused; the error says why' },
  usage: { code: 2, meaning: 'wrong arguments, or not confirmed' },
  run_unsuccessful: { code: 3, meaning: 'the awaited run did not succeed' },
  timed_out: { code: 4, meaning: 'the wait took longer than its timeout' },
  found: { code: 5, meaning: '`doctor`, `audit` or `secrets rotate` found a problem' },
  interrupted: { code: 130, meaning: 'interrupted' },
} as const satisfies Readonly<Record<string, { readonly code: number; readonly meaning: string }>>

export type Exit = keyof typeof EXIT_CODES

/** Every code that an error report can have. */
export type ErrorCode = ProblemCode | OperatorErrorCode | CliErrorCode

/** The exits of the errors that have one other than `refused`. */
const EXIT_BY_ERROR: Readonly<Partial<Record<ErrorCode, Exit>>> = {
  usage: 'usage',
  not_confirmed: 'usage',
  timed_out: 'timed_out',
  interrupted: 'interrupted',
  stopped: 'interrupted',
}

export function exitForError(code: ErrorCode): Exit {
  return EXIT_BY_ERROR[code] ?? 'refused'
}

/** The table in `--help`. */
export function exitCodeLines(): string[] {
  return Object.values(EXIT_CODES).map(({ code, meaning }) => `${String(code).padStart(5)}  ${meaning}`)
}
