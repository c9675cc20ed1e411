import { EARLIEST_MS } from '../clock.ts'
import type { Lateness } from '../measure.ts'
import type { Reading } from '../work.ts'

/** How many slots of every subject are not counted at the start: statements are planned and code is loaded for the first time. */
export const WARM_UP = 20

/** The nearest-rank percentile. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((share / 100) * sorted.length) - 1)] ?? Number.NaN
}

/**
 * The p50, p99 and maximum of lateness in milliseconds.
 * @throws Error if one value is before its instant. No slot may begin early (I10), and the other values must not hide it.
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

interface Sparse {
  readonly slots: number
  readonly spacingMs: number
}

/** Measures the lateness of the requested slots, after the warm-up. */
export async function warmLateness(work: Sparse, measure: (work: Sparse) => Promise<Lateness>): Promise<Lateness> {
  const late = await measure({ slots: work.slots + WARM_UP, spacingMs: work.spacingMs })
  return late.slice(WARM_UP)
}
