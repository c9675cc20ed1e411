import { expect, test } from 'vitest'

import { duration, durationMs } from './duration.ts'

test.each([
  ['PT1S', 1000],
  ['PT90M', 5_400_000],
  ['P1D', 86_400_000],
  ['P1W', 604_800_000],
  ['P1DT2H3M4S', 93_784_000],
])('%s is %i milliseconds', (text, ms) => {
  expect(durationMs(text)).toBe(ms)
})

test.each(['', 'P', 'PT', 'P1M', 'P1Y', '-PT1S', 'PT1.5S', 'pt1s', '1h', 'PT1H ', 'P1DT'])(
  '%j is no duration',
  (text) => {
    expect(durationMs(text)).toBeUndefined()
  },
)

test('a duration outside of its range is refused, and the message says the range', () => {
  const schema = duration({ min: 'PT1M', max: 'P30D' })

  expect(schema.safeParse('PT1M').success).toBe(true)
  expect(schema.safeParse('P30D').success).toBe(true)
  for (const text of ['PT59S', 'P30DT1S', 'P1M', 7]) {
    expect(schema.safeParse(text).error?.issues[0]?.message).toMatch(/^expected an ISO 8601 duration from PT1M to P30D/)
  }
})
