import type { Reading } from '../work.ts'

/** The smallest value that is no less than so many percent of all. `sorted` ascending. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil((share / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** Of milliseconds. */
export function quantiles(values: readonly number[], note?: string): Reading[] {
  const sorted = values.toSorted((a, b) => a - b)
  const reading = (metric: string, share: number): Reading => ({
    metric,
    unit: 'ms',
    value: percentile(sorted, share),
    ...(note === undefined ? {} : { note }),
  })
  return [reading('p50', 50), reading('p99', 99), reading('max', 100)]
}
