import { z } from 'zod'

import { component } from './component.ts'

interface ProblemType {
  readonly status: number
  readonly title: string
}

/** Every way the service refuses or fails: its status, and what it is called. Closed; a client may switch over it. */
export const PROBLEM_TYPES = {
  invalid_input: { status: 400, title: 'Something in the request is wrong' },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  unauthenticated: { status: 401, title: 'No valid API key or token' },
  forbidden: { status: 403, title: 'Whoever asks may not do this' },
  route_not_found: { status: 404, title: 'There is nothing here' },
  schedule_not_found: { status: 404, title: 'No such schedule' },
  run_not_found: { status: 404, title: 'No such run' },
  grant_not_found: { status: 404, title: 'No such grant' },
  key_not_found: { status: 404, title: 'No such key' },
  secret_not_found: { status: 404, title: 'No such secret' },
  tenant_not_found: { status: 404, title: 'No such tenant' },
  project_not_found: { status: 404, title: 'No such project' },
  method_not_allowed: { status: 405, title: 'Not with this method' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  state_conflict: { status: 409, title: 'Not in this state' },
  overlap: { status: 409, title: 'Another run is under way' },
  grant_invalid: { status: 409, title: 'The grant does not carry a run' },
  quota_exceeded: { status: 409, title: 'There is no room for another' },
  idempotency_in_flight: { status: 409, title: 'The same request is being answered' },
  revision_conflict: { status: 412, title: 'Somebody else changed it' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body is of a type that is not understood' },
  slot_not_found: { status: 422, title: 'No such slot' },
  purge_refused: { status: 422, title: 'The purge was not confirmed' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key belongs to another request' },
  revision_required: { status: 428, title: 'Say which revision is meant' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'A fault of the service' },
  unavailable: { status: 503, title: 'Not now' },
  secrets_unavailable: { status: 503, title: 'No secrets can be kept here' },
} as const satisfies Record<string, ProblemType>

export type ProblemCode = keyof typeof PROBLEM_TYPES

export const PROBLEM_CODES = Object.keys(PROBLEM_TYPES) as readonly ProblemCode[]

/** Stable: `type` of RFC 9457. It names, it does not locate. */
export function problemTypeUri(code: ProblemCode): string {
  return `urn:carillon:problem:${code}`
}

const fieldProblem = component(
  'FieldProblem',
  z.object({
    field: z.string().meta({
      description: 'Where in the request, such as `cadence.expression` or `query.limit`; empty for all of it.',
    }),
    message: z.string().meta({ description: 'What was expected, what was found, what to do.' }),
  }),
)

export const problem = component(
  'Problem',
  z.object({
    type: z
      .string()
      .meta({ description: 'Stable name of the problem as a URI.', examples: [problemTypeUri('invalid_input')] }),
    code: z.enum(PROBLEM_CODES).meta({ description: 'The same name, short.' }),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string().meta({ description: 'What happened this time, and what to do.' }),
    instance: z.string().meta({ description: 'The request, as the log of the service calls it.' }),
    errors: z.array(fieldProblem).meta({ description: 'The fields at fault; none if it was no field.' }),
  }),
  'RFC 9457. Nothing was written.',
)

export type Problem = z.infer<typeof problem>
export type FieldProblem = z.infer<typeof fieldProblem>
