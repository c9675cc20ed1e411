import { invalidInput, ProblemError } from './problem-error.ts'

/** What Fastify refuses before a handler is asked, by its code. */
const PROBLEMS: Readonly<Record<string, (error: Error) => ProblemError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: unsupportedMediaType,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: (cause) => notWhole(cause),
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: unsupportedMediaType,
  FST_ERR_BAD_URL: badUrl,
  FST_ERR_MAX_PARAM_LENGTH: badUrl,
}

/** Undefined for an error that is not about the request. */
export function frameworkProblem(error: Error): ProblemError | undefined {
  const { code, statusCode } = error as { readonly code?: unknown; readonly statusCode?: unknown }
  const known = typeof code === 'string' && Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code] : undefined
  if (known !== undefined) return known(error)
  // A client that went away amid its body is such an error: nobody will read the answer.
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? notWhole(error) : undefined
}

function bodyTooLarge(cause: Error): ProblemError {
  const detail = 'expected a body of at most 1 MiB, got more: keep what is large where the target finds it by name'
  return new ProblemError('body_too_large', detail, { cause })
}

function unsupportedMediaType(cause: Error): ProblemError {
  const detail = 'expected a body of type application/json, got another: send JSON, and say so in Content-Type'
  return new ProblemError('unsupported_media_type', detail, { cause })
}

function notWhole(cause: Error): ProblemError {
  return new ProblemError('malformed_json', 'expected a body as long as Content-Length says, got another', { cause })
}

function badUrl(): ProblemError {
  const message = 'expected a path in UTF-8 with valid percent-encoding, got another: encode each part of it'
  return invalidInput([{ field: 'path', message }])
}
