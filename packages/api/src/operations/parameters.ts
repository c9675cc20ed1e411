import { z } from 'zod'

import { expected } from '../expected.ts'
import { IF_MATCH_MAX } from '../limits.ts'
import { idempotencyKey, NAME_PATTERN, NAME_SHAPE } from '../schemas/fields.ts'

/* Parameters that several operations take. */

/** The `{id}` of a path. */
export const idParams = z.strictObject({ id: z.string() })

/** Headers of a request that a client may send again with the same key: the request takes effect once. */
export const mayBeRepeated = z.object({
  'idempotency-key': idempotencyKey.optional().meta({
    description: 'A request with the same key and body within a day gets the same answer and has no further effect.',
  }),
})

const ETAG = String.raw`(?:W\/)?"[1-9]\d{0,8}"`

/** Headers of a request that may name the revision that it is meant for. */
export const mayMatch = z.object({
  'if-match': z
    .string(expected('an If-Match such as "3"'))
    .regex(
      new RegExp(String.raw`^(?:\*|${ETAG}(?:[ \t]*,[ \t]*${ETAG}){0,${IF_MATCH_MAX - 1}})$`),
      expected(`an If-Match such as "3", a list of at most ${IF_MATCH_MAX}, or *`),
    )
    .optional()
    .meta({
      description:
        'The ETag that the client read. If the schedule has changed since, the answer is 412. `*` matches any.',
    }),
})

const scopeQuery = z
  .string(expected(NAME_SHAPE))
  .regex(NAME_PATTERN, expected(NAME_SHAPE))
  .optional()
  .meta({ description: 'The default is the one of the caller.' })

/** Names the project whose API keys a request lists or revokes. */
export const keyScope = { tenant: scopeQuery, project: scopeQuery }
