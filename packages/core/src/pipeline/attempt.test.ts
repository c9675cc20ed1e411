import { expect, test } from 'vitest'

import { ManualClock } from '../../tests/manual-clock.ts'
import { TimeLimit } from './attempt.ts'

function limited(timeoutMs: number, timeoutMaxMs: number) {
  const clock = new ManualClock('2026-03-02T09:00:00Z')
  let passed = 0
  const limit = new TimeLimit(clock, { timeoutMs, timeoutMaxMs }, () => (passed += 1))
  return { clock, limit, passed: () => passed }
}

test('a limit that is not extended passes once, at its time', () => {
  const { clock, passed } = limited(1000, 5000)

  clock.advance(999)
  expect(passed()).toBe(0)
  clock.advance(10_000)
  expect(passed()).toBe(1)
})

test('a limit is extended from now on, and at most to the longest time of its kind', () => {
  const { clock, limit, passed } = limited(1000, 5000)
  clock.advance(900)
  limit.extend(3000)
  clock.advance(2999)
  expect(passed()).toBe(0)

  limit.extend(60_000)
  clock.advance(1100)
  expect(passed()).toBe(0)
  clock.advance(1)
  expect(passed()).toBe(1)
})

test('a limit may be shortened, and what is no duration does not change it', () => {
  const { clock, limit, passed } = limited(1000, 5000)
  limit.extend(Number.NaN)
  limit.extend(-1)
  limit.extend(10)

  clock.advance(10)
  expect(passed()).toBe(1)
})

test('a limit that was stopped never passes, even if it is extended', () => {
  const { clock, limit, passed } = limited(1000, 5000)
  limit.stop()
  limit.extend(10)
  clock.advance(10_000)

  expect(passed()).toBe(0)
})
