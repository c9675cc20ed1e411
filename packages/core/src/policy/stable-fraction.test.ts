import { expect, test } from 'vitest'

import { stableFraction } from './stable-fraction.ts'

test.each([
  ['', 0.668_922_188_458_964_2],
  ['0198c0de-0000-7000-8000-000000000001', 0.305_893_372_977_152_47],
  ['0198c0de-0000-7000-8000-000000000002', 0.521_537_413_354_963_1],
])('the fraction of "%s" is the same in every release', (text, fraction) => {
  expect(stableFraction(text)).toBe(fraction)
})

test('the fractions of texts that differ only in the last character are independent', () => {
  const distances = Array.from({ length: 1000 }, (_, n) =>
    Math.abs(stableFraction(`run-${n}:1`) - stableFraction(`run-${n}:2`)),
  )

  // Two independent fractions are a third apart on average.
  expect(distances.reduce((sum, distance) => sum + distance, 0) / distances.length).toBeCloseTo(1 / 3, 1)
})
