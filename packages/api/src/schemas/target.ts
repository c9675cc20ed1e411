import { foundText } from '@carillon/cadence/words'
import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { CALLBACK_TIMEOUT, ECHO_PAYLOAD_MAX_BYTES, HTTP_TIMEOUT_SECONDS } from '../limits.ts'
import { DEADLINE_POLICIES, HTTP_COMPLETIONS, HTTP_METHOD_DEFAULT, HTTP_METHODS } from '../words.ts'
import { duration } from './duration.ts'
import { json, NAME_PATTERN, NAME_SHAPE, wholeNumber } from './fields.ts'

const SECRET_REF_SHAPE = `the name of a secret: ${NAME_SHAPE}`

const secretRef = z
  .string({ error: ({ input }) => `expected ${SECRET_REF_SHAPE}, got ${withheldText(input)}` })
  .regex(NAME_PATTERN, { error: ({ input }) => `expected ${SECRET_REF_SHAPE}, got ${withheldText(input)}` })
  .meta({ description: 'The name of a secret of the project, never the secret itself.' })

/** The kinds of authentication that name a secret. */
export const SECRET_AUTH_KINDS = ['bearer', 'hmac'] as const

const [BEARER, HMAC] = SECRET_AUTH_KINDS
const noAuth = z.object({ kind: z.literal('none') })
const bearerAuth = z.object({ kind: z.literal(BEARER), secretRef })
const hmacAuth = z.object({ kind: z.literal(HMAC), secretRef })

/** How a request proves its origin. A schedule holds the name of a secret, never the secret itself (I8). */
const httpAuth = component(
  'HttpAuth',
  z.union([noAuth, bearerAuth, hmacAuth]),
  '`bearer`: sent in Authorization. `hmac`: signed by Standard Webhooks.',
)

const strictHttpAuth = z.discriminatedUnion('kind', [noAuth.strict(), bearerAuth.strict(), hmacAuth.strict()], {
  error: ({ code, input }) =>
    code === 'invalid_union'
      ? 'expected the kind bearer, hmac or none, got another'
      : `expected an object such as { "kind": "bearer", "secretRef": "…" }, got ${withheldText(input)}`,
})

const httpTarget = component(
  'HttpTarget',
  z.object({
    kind: z.literal('http', expected('"http"')),
    url: z.string(expected('a URL')).meta({ examples: ['https://digest.internal/run'] }),
    method: z
      .enum(HTTP_METHODS, expected(`one of ${HTTP_METHODS.join(', ')}`))
      .optional()
      .meta({ description: `The method. The default is ${HTTP_METHOD_DEFAULT}.` }),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: 'Headers in addition to those that Carillon sets. They must not contain credentials.' }),
    payload: json.optional().meta({ description: 'Carillon sends the payload unchanged as the JSON body.' }),
    auth: httpAuth.optional().meta({ description: 'How the request proves its origin. If absent, it does not.' }),
    timeoutSeconds: wholeNumber(HTTP_TIMEOUT_SECONDS)
      .optional()
      .meta({ description: `The time limit of one attempt. The default is ${HTTP_TIMEOUT_SECONDS.default}.` }),
    completion: z
      .enum(HTTP_COMPLETIONS, expected(`one of ${HTTP_COMPLETIONS.join(', ')}`))
      .optional()
      .meta({
        description:
          'What ends the run: the response (the default), or a callback. For a callback the request carries a URL and a token, and ' +
          'any 2xx says that the service has taken the work.',
      }),
    callbackTimeout: duration(CALLBACK_TIMEOUT)
      .optional()
      .meta({
        description:
          'How long the run waits for its callback, or for the next heartbeat of the service. ISO 8601; the default is ' +
          `${CALLBACK_TIMEOUT.default}.`,
      }),
    onDeadline: z
      .enum(DEADLINE_POLICIES, expected(`one of ${DEADLINE_POLICIES.join(', ')}`))
      .optional()
      .meta({
        description:
          'If the callback does not come in time: the retry policy decides (`retry`, the default), or the run fails.',
      }),
  }),
  'An HTTP request. The slot, the attempt and the Idempotency-Key are in its headers.',
)

/**
 * `HttpTarget` as it is enforced: a misspelt field is refused. The HTTP target adds its rules for the URL, the headers and
 * the payload, which no JSON schema can express.
 */
export const strictHttpTarget = httpTarget.extend({ auth: strictHttpAuth.optional() }).strict()

const echoTarget = component(
  'EchoTarget',
  z.object({
    kind: z.literal('echo', expected('"echo"')),
    payload: json
      .optional()
      .meta({ description: `The result of each run: at most ${ECHO_PAYLOAD_MAX_BYTES} bytes of JSON.` }),
  }),
  'Calls nothing, and answers its payload: for first steps and for tests.',
)

/** `EchoTarget` as it is enforced: a misspelt field is refused. */
export const strictEchoTarget = echoTarget.strict()

const otherTarget = component(
  'OtherTarget',
  z.looseObject({
    kind: z
      .string()
      .regex(/^(?!(?:http|echo)$)[a-z][a-z0-9_]{0,30}$/)
      .meta({ description: 'Another kind that this installation serves: see GET /target-kinds.' }),
  }),
  'The fields that a target of that kind needs.',
)

/** What a schedule calls. */
export const target = component('Target', z.union([httpTarget, echoTarget, otherTarget]), 'What is called.')

export type HttpAuth = z.infer<typeof strictHttpAuth>

/** A text in the place of an auth or a secret's name may be the secret itself, so no message shows it. */
function withheldText(input: unknown): string {
  return typeof input === 'string' ? 'another text' : foundText(input)
}
