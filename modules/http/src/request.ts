import { randomBytes } from 'node:crypto'

import type { Callback, TargetContext } from '@carillon/core'
import { VERSION } from '@carillon/core'

import type { HttpSpec } from './spec.ts'

const USER_AGENT = `Carillon/${VERSION}`

/**
 * The headers of one attempt: name, value, name, value and so on. A schedule may set its own Content-Type and User-Agent.
 * @param callback where the called service completes the run; undefined if its response does
 */
export function requestHeaders(
  context: TargetContext<HttpSpec>,
  credentials: readonly (readonly [string, string])[],
  callback: Callback | undefined,
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
  if (callback !== undefined) {
    headers.push('Carillon-Callback', callback.url)
    headers.push('Carillon-Callback-Token', callback.token)
  }
  for (const [name, value] of credentials) headers.push(name, value)
  if (!isAgentGiven) headers.push('User-Agent', USER_AGENT)
  if (payload !== undefined && !isTypeGiven) headers.push('Content-Type', 'application/json')
  return headers
}

let lastInstant = Number.NaN
let lastText = ''

/** Formats an instant. Caches the last text, because thousands of schedules are due at the same instant. */
function isoText(instant: number): string {
  if (instant !== lastInstant) {
    lastText = new Date(instant).toISOString()
    lastInstant = instant
  }
  return lastText
}

const SPAN_LENGTH = 16
/** One system call draws this many random bytes, enough for many spans: it costs more than everything else here. */
const DRAWN_BYTES = 4096
let drawn = ''
let used = 0

/** The header of W3C Trace Context. The run is the trace and each attempt a span, so tracing tools group a run's attempts. */
function traceparent(runId: string): string {
  const traceId = runId.replaceAll('-', '').toLowerCase()
  return `00-${traceId}-${nextSpan()}-01`
}

function nextSpan(): string {
  if (used === drawn.length) {
    drawn = randomBytes(DRAWN_BYTES).toString('hex')
    used = 0
  }
  used += SPAN_LENGTH
  return drawn.slice(used - SPAN_LENGTH, used)
}
