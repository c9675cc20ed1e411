import { describe, expect, test } from 'vitest'

import { cadenceOf, problemsOf } from './cadence-of.ts'

const daily = { kind: 'rrule', rule: 'FREQ=DAILY', start: '2027-01-01T09:00:00', timezone: 'America/New_York' }

/** Local times on consecutive days of one year. */
function dates(count: number, suffix: string): string[] {
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(Date.UTC(2027, 0, 1 + (index % 360))).toISOString().slice(0, 10)
    return `${day}T${String(10 + Math.floor(index / 360)).padStart(2, '0')}:00:00${suffix}`
  })
}

describe('the size of an input', () => {
  test.each([
    ['a typed array', new Uint8Array(1_000_000), 'wrong_type', ''],
    [
      'too many fields',
      Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`f${index}`, 1])),
      'too_long',
      '',
    ],
    [
      'too many exdates',
      { ...daily, exdates: Array.from({ length: 1001 }, () => '2027-01-01') },
      'too_long',
      'exdates',
    ],
    ['a sparse list', { ...daily, rdates: Array.from({ length: 20_000_000 }) }, 'too_long', 'rdates'],
    ['a long text', { kind: 'once', at: 'x'.repeat(30_000) }, 'too_long', 'at'],
  ])('is checked before the input is read: %s', (_name, input, code, field) => {
    expect(problemsOf(input)).toMatchObject([{ code, field }])
  })

  test('does not raise the number of reported problems above 50', () => {
    const input = { kind: 'cron', expression: '@daily', ...Object.fromEntries(dates(90, '').map((name) => [name, 1])) }

    expect(problemsOf(input)).toHaveLength(50)
  })

  test.each(['', 'Z', '-05:00[America/New_York]'])(
    'may include 1,000 rdates and 1,000 exdates, written with %j',
    (suffix) => {
      const isAnnotated = suffix.endsWith(']')
      // New York has another offset for part of the year, and a wrong offset is a conflict. So these dates cover 60 days only.
      const written = isAnnotated ? dates(60, suffix) : dates(1000, suffix)
      const cadence = cadenceOf({
        ...daily,
        rdates: written,
        exdates: dates(1000, '').map((date) => date.slice(0, 10)),
      })

      expect(cadence.next(Date.UTC(2026, 0, 1))).toBe(Date.UTC(2027, 11, 27, 14))
    },
  )
})
