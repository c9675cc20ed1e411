/** A number rounded for readers: 41,200 · 312 · 41.2 · 4.12. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2
  return new Intl.NumberFormat('en-US', { maximumFractionDigits: digits }).format(value)
}

/** A number with one more digit, so that 0.596 does not look like the goal of 0.6. */
export function formatPrecise(value: number): string {
  const digits = Math.abs(value) >= 100 ? 1 : 3
  return new Intl.NumberFormat('en-US', { maximumFractionDigits: digits }).format(value)
}

/** The median, with the range over the rounds if there were several: `41,200 (39,800–42,100)`. */
export function formatSpread({ median, values }: { median: number; values: readonly number[] }): string {
  if (values.length < 2) return formatNumber(median)
  const [low, high] = [formatNumber(Math.min(...values)), formatNumber(Math.max(...values))]
  return low === high ? formatNumber(median) : `${formatNumber(median)} (${low}–${high})`
}
