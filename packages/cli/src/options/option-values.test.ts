import { describe, expect, test } from 'vitest'

import { readDurationMs, readIsoDuration } from './option-values.ts'

describe('a duration', () => {
  test.each([
    ['5s', 5000, 'PT5S'],
    ['500ms', 500, 'PT0.5S'],
    ['15m', 900_000, 'PT15M'],
    ['15min', 900_000, 'PT15M'],
    ['1h30m', 5_400_000, 'PT1H30M'],
    ['1d', 86_400_000, 'P1D'],
    ['2w1d', 1_296_000_000, 'P15D'],
    ['1d12h', 129_600_000, 'P1DT12H'],
    ['90', 90_000, 'PT90S'],
    ['PT15M', 900_000, 'PT15M'],
    ['pt0.5s', 500, 'PT0.5S'],
    ['P1W', 604_800_000, 'P1W'],
    ['0s', 0, 'PT0S'],
  ])('%s is read in milliseconds and as ISO 8601', (text, ms, iso) => {
    expect({ ms: readDurationMs(text), iso: readIsoDuration(text) }).toEqual({ ms, iso })
  })

  test('of months has no fixed length, and is passed to the server unchanged', () => {
    expect({ ms: readDurationMs('P1M'), iso: readIsoDuration('P1M') }).toEqual({ ms: undefined, iso: 'P1M' })
  })

  test.each(['', 's', 'P', 'PT', '5x', '-5s', '1.5h', '5 s', 'soon'])('cannot be read from "%s"', (text) => {
    expect(readDurationMs(text)).toBeUndefined()
  })
})
