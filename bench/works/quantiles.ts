import { EARLIEST_MS } from '../clock.ts'
import type { Reading } from '../work.ts'

/** The smallest value that is no less than so many percent of all. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((share / 100) * sorted.length) - 1)] ?? Number.NaN
}

/**
 * Of milliseconds from an instant on.
 * @throws Error if one is before its instant: no slot may begin early (I10), and the others must not hide it
 */
export function quantiles(values: readonly number[], note?: string): Reading[] {
  const earliest = Math.min(...values)
  if (earliest < EARLIEST_MS) {
    throw new Error(`expected nothing before its instant, got one ${(-earliest).toFixed(1)} ms early`)
  }
  const reading = (metric: string, share: number): Reading => ({
    metric,
    unit: 'ms',
    value: percentile(values, share),
    ...(note === undefined ? {} : { note }),
  })
  return [reading('p50', 50), reading('p99', 99), reading('max', 100)]
}
