import { randomFillSync } from 'node:crypto'

const SPAN_BYTES = 8
/** Drawn for many spans at once: asking the system costs more than all else here. */
const drawn = Buffer.alloc(SPAN_BYTES * 512)
let used = drawn.length

/** W3C Trace Context. The trace is the run, so that all its attempts stand side by side; each attempt is a span. */
export function traceparent(runId: string): string {
  const traceId = runId.replaceAll('-', '').toLowerCase()
  return `00-${traceId}-${nextSpan()}-01`
}

function nextSpan(): string {
  if (used === drawn.length) {
    randomFillSync(drawn)
    used = 0
  }
  used += SPAN_BYTES
  return drawn.toString('hex', used - SPAN_BYTES, used)
}
