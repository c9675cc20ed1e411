import type { TargetContext } from '@carillon/core'

import manifest from '../../package.json' with { type: 'json' }
import type { HttpSpec } from './http-spec.ts'
import { traceparent } from './traceparent.ts'

const USER_AGENT = `Carillon/${manifest.version}`

/** The headers of one attempt, names and values in turn. A schedule may say another Content-Type and User-Agent. */
export function requestHeaders(
  context: TargetContext<HttpSpec>,
  credentials: readonly (readonly [string, string])[],
): string[] {
  const { spec } = context
  const given = Object.entries(spec.headers ?? {})
  const isGiven = (name: string): boolean => given.some(([other]) => other.toLowerCase() === name)
  const headers = [
    ...given,
    ['Idempotency-Key', context.idempotencyKey],
    ['Carillon-Schedule-Id', context.scheduleId],
    ['Carillon-Scheduled-For', new Date(context.scheduledFor).toISOString()],
    ['Carillon-Attempt', String(context.attempt)],
    ['Carillon-Run-Id', context.runId],
    ['traceparent', traceparent(context.runId)],
    ...credentials,
  ]
  if (!isGiven('user-agent')) headers.push(['User-Agent', USER_AGENT])
  if (spec.payload !== undefined && !isGiven('content-type')) headers.push(['Content-Type', 'application/json'])
  return headers.flat()
}
