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
  const { headers: given, payload } = context.spec
  const headers: string[] = []
  let isAgentGiven = false
  let isTypeGiven = false
  if (given !== undefined) {
    for (const name of Object.keys(given)) {
      headers.push(name, given[name] ?? '')
      const plain = name.toLowerCase()
      isAgentGiven ||= plain === 'user-agent'
      isTypeGiven ||= plain === 'content-type'
    }
  }
  headers.push('Idempotency-Key', context.idempotencyKey)
  headers.push('Carillon-Schedule-Id', context.scheduleId)
  headers.push('Carillon-Scheduled-For', isoText(context.scheduledFor))
  headers.push('Carillon-Attempt', String(context.attempt))
  headers.push('Carillon-Run-Id', context.runId)
  headers.push('traceparent', traceparent(context.runId))
  for (const [name, value] of credentials) headers.push(name, value)
  if (!isAgentGiven) headers.push('User-Agent', USER_AGENT)
  if (payload !== undefined && !isTypeGiven) headers.push('Content-Type', 'application/json')
  return headers
}

let lastInstant = Number.NaN
let lastText = ''

/** The last one is remembered: thousands of schedules are due at the same instant. */
function isoText(instant: number): string {
  if (instant !== lastInstant) {
    lastText = new Date(instant).toISOString()
    lastInstant = instant
  }
  return lastText
}
