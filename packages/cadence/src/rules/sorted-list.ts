/** The first number above the limit in an ascending list. */
export function firstAbove(sorted: readonly number[], limit: number): number | undefined {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? 0) > limit) high = middle
    else low = middle + 1
  }
  return sorted[low]
}

/** The last number below the limit in an ascending list. */
export function lastBelow(sorted: readonly number[], limit: number): number | undefined {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? 0) < limit) low = middle + 1
    else high = middle
  }
  return sorted[low - 1]
}

/** Sorted ascending, without duplicates. */
export function ascending(numbers: Iterable<number>): number[] {
  return [...new Set(numbers)].toSorted((a, b) => a - b)
}

/** Groups consecutive integers into ranges of three or more; all others become ranges of one. */
export function rangesOf(sorted: readonly number[]): { readonly from: number; readonly to: number }[] {
  const runs: { from: number; to: number }[] = []
  for (const number of sorted) {
    const run = runs.at(-1)
    if (run !== undefined && run.to === number - 1) run.to = number
    else runs.push({ from: number, to: number })
  }
  return runs.flatMap(({ from, to }) =>
    to - from === 1 ? [from, to].map((at) => ({ from: at, to: at })) : [{ from, to }],
  )
}
