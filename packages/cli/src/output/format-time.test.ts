import { describe, expect, test } from 'vitest'

import { formatLocal, formatMs, formatRelative } from './format-time.ts'

describe('an instant', () => {
  test.each([
    ['2026-12-24T18:00:00.000Z', 'UTC', '2026-12-24 18:00:00Z'],
    ['2026-12-24T18:00:00.250Z', 'UTC', '2026-12-24 18:00:00.250Z'],
    ['2026-12-24T18:00:00.000Z', 'Europe/Madrid', '2026-12-24 19:00:00+01:00'],
    ['2026-07-24T18:00:00.000Z', 'Europe/Madrid', '2026-07-24 20:00:00+02:00'],
    ['2026-12-24T18:00:00.000Z', 'America/St_Johns', '2026-12-24 14:30:00-03:30'],
    ['2026-12-24T18:00:00.000Z', 'Asia/Kathmandu', '2026-12-24 23:45:00+05:45'],
    ['2026-07-24T18:00:00.000Z', 'Europe/London', '2026-07-24 19:00:00+01:00'],
    ['2026-12-24T18:00:00.000Z', 'Europe/London', '2026-12-24 18:00:00+00:00'],
    ['2026-12-24T18:00:00.000Z', 'Mars/Olympus', '2026-12-24 18:00:00+00:00'],
  ])('%s is printed in %s as %s', (instant, zone, local) => {
    expect(formatLocal(instant, zone)).toBe(local)
  })

  test('that occurs twice in local time is printed with its offset', () => {
    expect(formatLocal('2026-10-25T00:30:00.000Z', 'Europe/Madrid')).toBe('2026-10-25 02:30:00+02:00')
    expect(formatLocal('2026-10-25T01:30:00.000Z', 'Europe/Madrid')).toBe('2026-10-25 02:30:00+01:00')
  })

  test.each([
    [4000, 'in 4 s'],
    [400, 'now'],
    [-3000, '3 s ago'],
    [119_000, 'in 119 s'],
    [600_000, 'in 10 min'],
    [18_000_000, 'in 5 h'],
    [-86_400_000, '24 h ago'],
    [864_000_000, 'in 10 d'],
  ])('that is %d ms from now is printed as %s', (ms, text) => {
    expect(formatRelative(1_000_000_000_000 + ms, 1_000_000_000_000)).toBe(text)
  })
})

test.each([
  [0, '0 ms'],
  [9999, '9999 ms'],
  [12_400, '12 s'],
  [3_600_000, '60 min'],
])('a span of %d ms is printed as %s', (ms, text) => {
  expect(formatMs(ms)).toBe(text)
})
