import type { Json } from '@carillon/core'
import { z } from 'zod'

import { authSchema, type HttpAuth } from './auth-spec.ts'
import { found, refusing } from './fault.ts'
import { headerFaults } from './header-rules.ts'
import { jsonFault } from './json-value.ts'
import { readUrl } from './url-rules.ts'

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export type HttpMethod = (typeof HTTP_METHODS)[number]

/** What a schedule says of the HTTP request that it makes. */
export interface HttpSpec {
  readonly kind: 'http'
  /** In its canonical form. */
  readonly url: string
  /** @default 'POST' */
  readonly method: HttpMethod
  /** In addition to those that Carillon sets; neither those nor credentials. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The JSON body, sent unchanged; without it there is no body. Not with GET and HEAD. */
  readonly payload?: Json | undefined
  /** After which an attempt is cut. 1..300 @default 30 */
  readonly timeoutSeconds: number
  /** @default none */
  readonly auth?: HttpAuth | undefined
}

const PAYLOAD_MAX_BYTES = 256 * 1024
const TIMEOUT_MAX_SECONDS = 300
const TIMEOUT_DEFAULT_SECONDS = 30
const TIMEOUT_EXPECTED = expected(`a whole number from 1 to ${TIMEOUT_MAX_SECONDS}`)

/** Headers and payload pass as they are, never copied: a copy would lose a key such as `__proto__` in silence. */
export const httpSpecSchema: z.ZodType<HttpSpec> = z
  .strictObject({
    kind: z.literal('http', expected('"http"')),
    url: z.string(expected('a URL')).transform((text, context) => {
      const reading = readUrl(text)
      if (reading.ok) return reading.href
      context.addIssue({ code: 'custom', message: reading.message })
      return z.NEVER
    }),
    method: z.enum(HTTP_METHODS, expected(`one of ${HTTP_METHODS.join(', ')}`)).default('POST'),
    headers: (z.unknown().superRefine(refusing(headerFaults)) as z.ZodType<Record<string, string>>).optional(),
    payload: (z.unknown().superRefine(refusing(payloadFaults)) as z.ZodType<Json>).optional(),
    timeoutSeconds: z
      .int(TIMEOUT_EXPECTED)
      .min(1, TIMEOUT_EXPECTED)
      .max(TIMEOUT_MAX_SECONDS, TIMEOUT_EXPECTED)
      .default(TIMEOUT_DEFAULT_SECONDS),
    auth: authSchema.optional(),
  })
  .superRefine(({ method, payload }, context) => {
    if (payload === undefined || (method !== 'GET' && method !== 'HEAD')) return
    const message = `Expected no payload, because ${method} has no body; put it into the URL or use another method.`
    context.addIssue({ code: 'custom', path: ['payload'], message })
  })

function payloadFaults(payload: unknown) {
  const fault = jsonFault(payload, PAYLOAD_MAX_BYTES)
  return fault === undefined ? [] : [fault]
}

function expected(what: string) {
  return { error: (issue: { readonly input?: unknown }) => `Expected ${what}, but found ${found(issue.input)}.` }
}
