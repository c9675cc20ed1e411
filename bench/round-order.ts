import type { Part } from './work.ts'

/**
 * Who comes when in a round, counted from 1: each round begins with the next size, and each size with the next subject, so
 * that nobody is always the first, or always behind the same one.
 */
export function orderOfRound(parts: readonly Part[], round: number): readonly Part[] {
  const bySize = [...Map.groupBy(parts, ({ size }) => size).values()]
  return rotated(bySize, round - 1).flatMap((ofSize) => rotated(ofSize, round - 1))
}

function rotated<Value>(values: readonly Value[], by: number): readonly Value[] {
  const start = values.length === 0 ? 0 : by % values.length
  return [...values.slice(start), ...values.slice(0, start)]
}
