import { randomBytes } from 'node:crypto'

const SPAN_LENGTH = 16
/** Drawn for many spans at once, in hex: asking the system costs more than all else here. */
const DRAWN_BYTES = 4096
let drawn = ''
let used = 0

/** W3C Trace Context. The trace is the run, so that all its attempts stand side by side; each attempt is a span. */
export function traceparent(runId: string): string {
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
