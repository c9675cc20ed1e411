import { expect, test } from 'vitest'

import { spreadOffsetMs } from './spread.ts'

/** Consecutive UUIDs of version 7: they begin alike and differ by a counter. */
const IDS = Array.from(
  { length: 10_000 },
  (_, n) => `0198c0de-1a2b-7${n.toString(16).padStart(3, '0').slice(-3)}-8000-${n.toString(16).padStart(12, '0')}`,
)

test('a schedule without a spread is due at its slot', () => {
  expect(IDS.map((id) => spreadOffsetMs(id, 0)).every((offset) => offset === 0)).toBe(true)
})

test('the offset of a schedule never changes', () => {
  expect(spreadOffsetMs('0198c0de-0000-7000-8000-000000000001', 60)).toBe(18_353)
  expect(spreadOffsetMs('0198c0de-0000-7000-8000-000000000001', 3600)).toBe(1_101_216)
})

test.each([1, 7, 60, 3600])('offsets are whole milliseconds below a spread of %i s', (spreadSeconds) => {
  const isWithin = (offset: number) => Number.isInteger(offset) && offset >= 0 && offset < spreadSeconds * 1000

  expect(IDS.filter((id) => !isWithin(spreadOffsetMs(id, spreadSeconds)))).toEqual([])
})

test('10,000 neighbouring ids fill every second of a minute evenly', () => {
  const counts = Array.from({ length: 60 }, () => 0)
  for (const id of IDS) {
    const second = Math.floor(spreadOffsetMs(id, 60) / 1000)
    counts[second] = (counts[second] ?? 0) + 1
  }

  const mean = IDS.length / counts.length
  const chiSquare = counts.reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0)
  // 59 degrees of freedom: even chance stays below 98 in 999 of 1,000 cases.
  expect(chiSquare).toBeLessThan(98)
})
