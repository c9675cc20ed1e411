import { randomBytes } from 'node:crypto'

/** W3C Trace Context. The trace is the run, so that all its attempts stand side by side; each attempt is a span. */
export function traceparent(runId: string): string {
  const traceId = runId.replaceAll('-', '').toLowerCase()
  const spanId = randomBytes(8).toString('hex')
  return `00-${traceId}-${spanId}-01`
}
