import { z } from 'zod'

import { component } from './component.ts'

interface ProblemType {
  readonly status: number
  readonly title: string
}

/** Every way in which the server refuses a request or fails. The list is closed: a client may switch over the codes. */
export const PROBLEM_TYPES = {
  invalid_input: { status: 400, title: 'Something in the request is wrong' },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  unauthenticated: { status: 401, title: 'No valid API key or token' },
  forbidden: { status: 403, title: 'The caller may not do this' },
  admin_key_required: { status: 403, title: 'Only the admin key may do this' },
  route_not_found: { status: 404, title: 'No such route' },
  schedule_not_found: { status: 404, title: 'No such schedule' },
  run_not_found: { status: 404, title: 'No such run' },
  grant_not_found: { status: 404, title: 'No such grant' },
  key_not_found: { status: 404, title: 'No such key' },
  secret_not_found: { status: 404, title: 'No such secret' },
  tenant_not_found: { status: 404, title: 'No such tenant' },
  project_not_found: { status: 404, title: 'No such project' },
  // For what modules bring. What Carillon itself has is named above.
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The route does not have this method' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  state_conflict: { status: 409, title: 'The present state does not allow this' },
  overlap: { status: 409, title: 'Another run is under way' },
  grant_invalid: { status: 409, title: 'The grant does not permit the run' },
  quota_exceeded: { status: 409, title: 'The quota is used up' },
  idempotency_in_flight: { status: 409, title: 'The same request is still in progress' },
  revision_conflict: { status: 412, title: 'Another request changed the schedule' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The type of the body is not supported' },
  slot_not_found: { status: 422, title: 'No such slot' },
  purge_refused: { status: 422, title: 'The purge was not confirmed' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key belongs to another request' },
  revision_required: { status: 428, title: 'If-Match is required' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  target_hook_failed: { status: 500, title: 'The kind of the target failed' },
  internal: { status: 500, title: 'An error in the server' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
  secrets_unavailable: { status: 503, title: 'This installation stores no secrets' },
} as const satisfies Record<string, ProblemType>

export type ProblemCode = keyof typeof PROBLEM_TYPES

export const PROBLEM_CODES = Object.keys(PROBLEM_TYPES) as readonly ProblemCode[]

/** Problems that pass with time. Their answers say in `Retry-After` how long to wait. */
export const RETRY_AFTER_PROBLEMS: readonly ProblemCode[] = ['idempotency_in_flight', 'rate_limited', 'unavailable']

/** The `type` of a problem in RFC 9457. It never changes, and is a name, not an address to open. */
export function problemTypeUri(code: ProblemCode): string {
  return `urn:carillon:problem:${code}`
}

const fieldProblem = component(
  'FieldProblem',
  z.object({
    field: z.string().meta({
      description: 'The field, such as `cadence.expression` or `query.limit`; empty for the whole request.',
    }),
    message: z.string().meta({ description: 'What was expected, what the request has, what to do.' }),
  }),
)

export const problem = component(
  'Problem',
  z.object({
    type: z
      .string()
      .meta({ description: 'Stable name of the problem as a URI.', examples: [problemTypeUri('invalid_input')] }),
    code: z.enum(PROBLEM_CODES).meta({ description: 'The short form of the same name.' }),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string().meta({ description: 'What happened, and what to do.' }),
    instance: z.string().meta({ description: 'The request, by its id in the log of the server.' }),
    errors: z.array(fieldProblem).meta({ description: 'The fields at fault; empty if the problem is in no field.' }),
  }),
  'RFC 9457. Nothing was written.',
)

export type Problem = z.infer<typeof problem>
export type FieldProblem = z.infer<typeof fieldProblem>
