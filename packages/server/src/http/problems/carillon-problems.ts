import type { ProblemCode } from '@carillon/api'
import type { CarillonError, ErrorCode } from '@carillon/core'

import { ProblemError } from './problem-error.ts'

/** What each refusal of the core is called on the wire. */
const CODES: { readonly [Code in ErrorCode]: ProblemCode } = {
  invalid_input: 'invalid_input',
  schedule_not_found: 'schedule_not_found',
  run_not_found: 'run_not_found',
  grant_not_found: 'grant_not_found',
  key_not_found: 'key_not_found',
  secret_not_found: 'secret_not_found',
  revision_conflict: 'revision_conflict',
  state_conflict: 'state_conflict',
  overlap: 'overlap',
  grant_invalid: 'grant_invalid',
  slot_not_found: 'slot_not_found',
  quota_exceeded: 'quota_exceeded',
  purge_refused: 'purge_refused',
  secrets_unavailable: 'secrets_unavailable',
  idempotency_in_flight: 'idempotency_in_flight',
  idempotency_key_reused: 'idempotency_key_reused',
  database_unreachable: 'unavailable',
  schema_outdated: 'unavailable',
  role_refused: 'unavailable',
  schema_too_new: 'unavailable',
  schema_changed: 'unavailable',
  // Of workers and of options; no request leads to them.
  unknown_target_kind: 'internal',
  retention_too_short: 'internal',
  lease_lost: 'internal',
  workers_alive: 'internal',
}

/** What is at fault where the core knows no field: there it is an argument. */
const HEADERS: Partial<Record<ProblemCode, string>> = {
  revision_conflict: 'If-Match',
  idempotency_in_flight: 'Idempotency-Key',
  idempotency_key_reused: 'Idempotency-Key',
}

const UNAVAILABLE = 'the service cannot answer at the moment: ask again soon'
const INTERNAL = 'the service failed to answer: its log says why, under the id of this request'

export function carillonProblem(error: CarillonError): ProblemError {
  const code = CODES[error.code]
  // The message is about this installation, not about the request.
  if (code === 'unavailable') return unavailableProblem(error)
  if (code === 'internal') return internalProblem(error)
  const header = HEADERS[code]
  const errors =
    header === undefined
      ? error.problems.map(({ path, message }) => ({ field: path, message }))
      : [{ field: header, message: error.message }]
  return new ProblemError(code, error.message, { errors, cause: error })
}

export function unavailableProblem(cause: unknown): ProblemError {
  return new ProblemError('unavailable', UNAVAILABLE, { cause })
}

export function internalProblem(cause: unknown): ProblemError {
  return new ProblemError('internal', INTERNAL, { cause })
}
