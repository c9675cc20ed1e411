import { expect, test } from 'vitest'

import { AUTO_PAUSE_REASON, isThreshold, shouldAutoPause } from './auto-pause.ts'

test('E-55: the reason tells a schedule that paused itself from one that a person paused', () => {
  expect(AUTO_PAUSE_REASON).toBe('auto:consecutive_failures')
})

test('a threshold is 0, or from 3 to 100', () => {
  const candidates = [-3, -1, 0, 1, 2, 3, 3.5, 4, 99, 100, 101, Infinity, Number.NaN]

  expect(candidates.filter(isThreshold)).toEqual([0, 3, 4, 99, 100])
})

test.each([
  [10, 0, false],
  [10, 9, false],
  [10, 10, true],
  [10, 11, true],
  [3, 2, false],
  [3, 3, true],
])(
  'E-55: with a threshold of %i and %i consecutive failures, pausing is %s',
  (threshold, consecutiveFailures, pauses) => {
    expect(shouldAutoPause({ threshold, consecutiveFailures })).toBe(pauses)
  },
)

test.each([0, 1, 1000])('E-55: a threshold of 0 never pauses, not after %i failures', (consecutiveFailures) => {
  expect(shouldAutoPause({ threshold: 0, consecutiveFailures })).toBe(false)
})
