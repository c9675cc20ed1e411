/** As a reader wants it: 41,200 · 312 · 41.2 · 4.12. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2
  return new Intl.NumberFormat('en-US', { maximumFractionDigits: digits }).format(value)
}

/** With a digit more: 0.596 is not the 0.6 that was wanted. */
export function formatPrecise(value: number): string {
  const digits = Math.abs(value) >= 100 ? 1 : 3
  return new Intl.NumberFormat('en-US', { maximumFractionDigits: digits }).format(value)
}

/** The median, and from which to which the rounds went if there were several: `41,200 (39,800–42,100)`. */
export function formatSpread({ median, values }: { median: number; values: readonly number[] }): string {
  if (values.length < 2) return formatNumber(median)
  const [low, high] = [formatNumber(Math.min(...values)), formatNumber(Math.max(...values))]
  return low === high ? formatNumber(median) : `${formatNumber(median)} (${low}–${high})`
}
