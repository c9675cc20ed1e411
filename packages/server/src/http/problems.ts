import {
  PROBLEM_TYPES,
  problemTypeUri,
  REQUEST_BODY_MAX_BYTES,
  RETRY_AFTER_PROBLEMS,
  type FieldProblem,
  type Problem,
  type ProblemCode,
} from '@carillon/api'
import { CarillonError, RequestRefusal, type ErrorCode } from '@carillon/core'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { JwtKeysUnavailableError } from '../auth/issuer-keys.ts'
import { isUnreachableDatabase } from './database-errors.ts'

interface ProblemOptions extends ErrorOptions {
  readonly errors?: readonly FieldProblem[]
  /** Headers of the answer, besides those of every problem. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Refuses a request. The message is the `detail` that the caller reads; the cause goes to the log only. */
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

/** Refuses a request because of its fields. The detail quotes the first field at fault. */
export function invalidInput(errors: readonly FieldProblem[]): ProblemError {
  const [first] = errors
  const rest = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const detail = first === undefined ? 'the request is wrong' : `${first.field || 'body'}: ${first.message}${rest}`
  return new ProblemError('invalid_input', detail, { errors })
}

export function unavailableProblem(cause: unknown): ProblemError {
  return new ProblemError('unavailable', 'the server cannot answer at the moment: try again soon', { cause })
}

function internalProblem(cause: unknown): ProblemError {
  const detail = 'the server failed to answer: its log has the reason, under the id of this request'
  return new ProblemError('internal', detail, { cause })
}

/** Turns anything that was thrown into the problem that answers the request. */
function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof CarillonError) return coreProblem(error)
  if (RequestRefusal.isRefusal(error)) return refusalProblem(error)
  if (!(error instanceof Error)) return internalProblem(error)
  const refused = frameworkProblem(error)
  if (refused !== undefined) return refused
  const isTemporary = error instanceof JwtKeysUnavailableError || isUnreachableDatabase(error)
  return isTemporary ? unavailableProblem(error) : internalProblem(error)
}

function refusalProblem(refusal: RequestRefusal): ProblemError {
  const { code, message, errors, headers, cause } = refusal
  // A module may be plain JavaScript.
  if (!Object.hasOwn(PROBLEM_TYPES, code)) return internalProblem(refusal)
  return new ProblemError(code, message, { errors, headers, cause })
}

/** The code on the wire for each error of core. */
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
  // Errors of workers and of options, which no request causes.
  target_hook_failed: 'target_hook_failed',
  unknown_target_kind: 'internal',
  retention_too_short: 'internal',
  lease_lost: 'internal',
  workers_alive: 'internal',
  module_refused: 'internal',
}

/** The header at fault for errors that core reports without a field: what the caller sends as a header, core gets as an argument. */
const HEADERS: Partial<Record<ProblemCode, string>> = {
  revision_conflict: 'If-Match',
  idempotency_in_flight: 'Idempotency-Key',
  idempotency_key_reused: 'Idempotency-Key',
}

function coreProblem(error: CarillonError): ProblemError {
  const code = CODES[error.code]
  // These messages describe the installation, not the request, so the caller does not see them.
  if (code === 'unavailable') return unavailableProblem(error)
  if (code === 'internal') return internalProblem(error)
  const header = HEADERS[code]
  const errors =
    header === undefined
      ? error.problems.map(({ path, message }) => ({ field: path, message }))
      : [{ field: header, message: error.message }]
  return new ProblemError(code, error.message, { errors, cause: error })
}

/**
 * Runs `work`. If core throws, the fields in the error are renamed to the names that the caller knows.
 * @param names maps the name of core's argument to the caller's field; other names stay as they are
 */
export async function withRenamedFields<Result>(
  names: Readonly<Record<string, string>>,
  work: () => Promise<Result>,
): Promise<Result> {
  // Own properties only: a field may be called `constructor`.
  const renamed = (path: string): string => (Object.hasOwn(names, path) ? names[path] : undefined) ?? path
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CarillonError) || error.problems.length === 0) throw error
    const { code, message, problems } = error
    const path = problems[0]?.path ?? ''
    const text = message.startsWith(`${path}:`) ? renamed(path) + message.slice(path.length) : message
    throw new CarillonError(code, text, {
      problems: problems.map((problem) => ({ ...problem, path: renamed(problem.path) })),
      cause: error,
    })
  }
}

/** Refusals of Fastify before a handler runs, by their code. */
const FRAMEWORK_PROBLEMS: Readonly<Record<string, (cause: Error) => ProblemError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: unsupportedMediaType,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: (cause) => incompleteBody(cause),
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: unsupportedMediaType,
  FST_ERR_BAD_URL: badUrl,
  FST_ERR_MAX_PARAM_LENGTH: badUrl,
}

/** Returns the problem for an error of Fastify that the request caused; undefined for any other error. */
function frameworkProblem(error: Error): ProblemError | undefined {
  const { code, statusCode } = error as { readonly code?: unknown; readonly statusCode?: unknown }
  const known =
    typeof code === 'string' && Object.hasOwn(FRAMEWORK_PROBLEMS, code) ? FRAMEWORK_PROBLEMS[code] : undefined
  if (known !== undefined) return known(error)
  // For instance, the client disconnected in the middle of its body. Then it will not read the answer.
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? incompleteBody(error) : undefined
}

function bodyTooLarge(cause: Error): ProblemError {
  const limit = `expected a body of at most ${REQUEST_BODY_MAX_BYTES} bytes`
  const detail = `${limit}, got more: store large data elsewhere and send a reference to it`
  return new ProblemError('body_too_large', detail, { cause })
}

function unsupportedMediaType(cause: Error): ProblemError {
  const detail = 'expected a body of type application/json, got another: send JSON, and say so in Content-Type'
  return new ProblemError('unsupported_media_type', detail, { cause })
}

function incompleteBody(cause: Error): ProblemError {
  return new ProblemError('malformed_json', 'expected a body as long as Content-Length says, got another', { cause })
}

function badUrl(): ProblemError {
  const message = 'expected a path in UTF-8 with valid percent-encoding, got another: encode each part of it'
  return invalidInput([{ field: 'path', message }])
}

/** Used unless the problem sets its own Retry-After. */
const RETRY_AFTER_SECONDS = '1'

interface ProblemAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Problem
}

/** Builds the answer to a problem, in the format of RFC 9457. */
export function problemAnswer(
  { code, status, message, errors, headers }: ProblemError,
  requestId: string,
): ProblemAnswer {
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...(RETRY_AFTER_PROBLEMS.includes(code) ? { 'retry-after': RETRY_AFTER_SECONDS } : {}),
      ...headers,
    },
    body: {
      type: problemTypeUri(code),
      code,
      title: PROBLEM_TYPES[code].title,
      status,
      detail: message,
      instance: `/requests/${requestId}`,
      errors: [...errors],
    },
  }
}

/** Answers an error as a problem, and keeps the problem on the request for the log. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error)
  request.problem = problem
  const { status, headers, body } = problemAnswer(problem, request.id)
  const { errors } = request.routeOptions.config.operation ?? {}
  const own = errors && { 'content-type': errors.mediaType ?? 'application/json' }
  // The body is sent as a string, because Fastify would set the content type of an object to application/json.
  return reply
    .code(status)
    .headers({ ...headers, ...own })
    .send(JSON.stringify(errors === undefined ? body : errors.toBody(body)))
}
