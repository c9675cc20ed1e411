import {
  CALLBACK_TIMEOUT,
  durationMs,
  HTTP_METHOD_DEFAULT,
  HTTP_PAYLOAD_MAX_BYTES,
  HTTP_TIMEOUT_SECONDS,
  PROBLEMS_MAX,
  strictHttpTargetSchema,
} from '@carillon/api'
import type { Json } from '@carillon/core'
import { readUrl } from '@carillon/outbound'
import { z } from 'zod'

import { headerFaults } from './header-rules.ts'
import { jsonFault, type Fault } from './json-value.ts'

/**
 * The contract's `HttpTarget` with the rules that JSON Schema cannot express. Headers and payload are checked but not copied:
 * a copy would silently lose a key such as `__proto__`.
 */
export const httpSpecSchema = strictHttpTargetSchema
  .extend({
    url: strictHttpTargetSchema.shape.url.transform((text, context) => {
      const reading = readUrl(text)
      if (reading.ok) return reading.href
      context.addIssue({ code: 'custom', message: reading.message })
      return z.NEVER
    }),
    method: strictHttpTargetSchema.shape.method.unwrap().default(HTTP_METHOD_DEFAULT),
    headers: checkedField<Readonly<Record<string, string>>>(headerFaults)
      .optional()
      .meta({
        type: 'object',
        additionalProperties: { type: 'string' },
        ...strictHttpTargetSchema.shape.headers.meta(),
      }),
    payload: checkedField<Json>(payloadFaults)
      .optional()
      .meta({ ...strictHttpTargetSchema.shape.payload.meta() }),
    timeoutSeconds: strictHttpTargetSchema.shape.timeoutSeconds.unwrap().default(HTTP_TIMEOUT_SECONDS.default),
  })
  .superRefine(({ completion, callbackTimeout, onDeadline }, context) => {
    if (completion === 'callback') return
    for (const [field, value] of Object.entries({ callbackTimeout, onDeadline })) {
      if (value === undefined) continue
      const message = `expected no ${field}, because the response ends the run, got one: leave it out, or set completion to "callback"`
      context.addIssue({ code: 'custom', path: [field], message })
    }
  })
  .superRefine(({ method, payload }, context) => {
    if (payload === undefined || (method !== 'GET' && method !== 'HEAD')) return
    const message = `expected no payload, because ${method} has no body, got one: put it into the URL or use another method`
    context.addIssue({ code: 'custom', path: ['payload'], message })
  })

/** The HTTP request that a schedule makes, with every default filled in and the URL in its canonical form. */
export type HttpSpec = Readonly<z.output<typeof httpSpecSchema>>

/** A field whose value `faultsOf` checks. The value itself is not copied or changed. */
function checkedField<Value>(faultsOf: (value: unknown) => Iterable<Fault>): z.ZodType<Value> {
  // The cast holds because `faultsOf` reports every value that is not a `Value`.
  return z.unknown().superRefine((value, context) => {
    let count = 0
    for (const { path, message } of faultsOf(value)) {
      if (count++ === PROBLEMS_MAX) return
      context.addIssue({ code: 'custom', path: [...path], message })
    }
  }) as z.ZodType<Value>
}

function payloadFaults(payload: unknown): Fault[] {
  const fault = jsonFault(payload, HTTP_PAYLOAD_MAX_BYTES)
  return fault === undefined ? [] : [fault]
}

/** For how long a run waits for its callback, or for the next heartbeat. */
export function callbackTimeoutMs({ callbackTimeout = CALLBACK_TIMEOUT.default }: HttpSpec): number {
  return durationMs(callbackTimeout) ?? 0
}
