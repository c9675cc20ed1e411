import { PROBLEMS_MAX } from '@carillon/api'

/** One thing that is wrong with an input: the field at fault, what was expected and found. */
export interface Problem {
  /** From the input's root: `target.headers.Host`, `policy.retry.maxAttempts`. Empty for the input itself. */
  readonly path: string
  /** One sentence: what was expected, what was found, what to do. */
  readonly message: string
}

/** Every error code of the scheduler. The list is closed, so a program can switch over it. */
const ERROR_CODES = [
  'invalid_input',
  'schedule_not_found',
  'run_not_found',
  'key_not_found',
  'grant_not_found',
  'secret_not_found',
  'revision_conflict',
  'state_conflict',
  'overlap',
  'grant_invalid',
  'slot_not_found',
  'quota_exceeded',
  'purge_refused',
  'secrets_unavailable',
  'unknown_target_kind',
  /** A hook of a target threw, or took too long. */
  'target_hook_failed',
  'retention_too_short',
  'database_unreachable',
  'schema_outdated',
  'schema_too_new',
  'schema_changed',
  'workers_alive',
  'module_refused',
  'lease_lost',
  'role_refused',
  'idempotency_in_flight',
  'idempotency_key_reused',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** The error that the scheduler throws. `code` says what went wrong, `problems` lists the fields at fault. */
export class CarillonError extends Error {
  override readonly name = 'CarillonError'
  readonly code: ErrorCode
  readonly problems: readonly Problem[]

  constructor(code: ErrorCode, message: string, options: { problems?: readonly Problem[]; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.problems = options.problems ?? []
  }
}

/** The error for a refused input: nothing was written. It lists at most `PROBLEMS_MAX` problems. */
export function invalidInput(problems: readonly Problem[]): CarillonError {
  const [first] = problems
  const rest = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  const path = first === undefined || first.path === '' ? 'input' : first.path
  return new CarillonError('invalid_input', `${path}: ${first?.message ?? 'is wrong'}${rest}`, {
    problems: problems.slice(0, PROBLEMS_MAX),
  })
}
