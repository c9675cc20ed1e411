import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { cadenceOf, problemsOf, utc } from './cadence-of.ts'

const FREQS = ['HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']
const INTERVALS = [1, 7, 11, 97, 366]
const CADENCE_LIMITS = [
  'BYMONTH=2;BYMONTHDAY=29',
  'BYMONTH=2;BYMONTHDAY=29;BYDAY=MO',
  'BYMONTH=12;BYMONTHDAY=31',
  'BYDAY=TU',
]

const RULES = FREQS.flatMap((freq) =>
  INTERVALS.flatMap((interval) => CADENCE_LIMITS.map((limit) => `FREQ=${freq};INTERVAL=${interval};${limit}`)),
)

describe('a rule whose slots lie very far apart', () => {
  test.each(RULES)('%s is rejected by parse, or next finds all its slots', (rule) => {
    for (const start of ['2028-02-29T09:00:00', '2026-01-05T02:00:00']) {
      const parsed = parse({ kind: 'rrule', rule, start, timezone: 'Europe/Madrid' })
      if (!parsed.ok) {
        expect(['conflict', 'never_fires', 'out_of_range', 'too_complex']).toContain(parsed.problems[0]?.code)
        continue
      }
      const { cadence } = parsed
      let slot = cadence.next(0)
      for (let followed = 0; followed < 4 && slot !== null; followed += 1) {
        const next = cadence.next(slot)
        if (next !== null) expect(cadence.previous(next)).toBe(slot)
        slot = next
      }
      cadence.warnings(utc('2027-01-01T00:00:00'))
    }
  })

  test('is rejected if its second slot is too far away to find, even if the first one is close', () => {
    const rule = 'FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0;BYSECOND=0'

    expect(problemsOf({ kind: 'rrule', rule, start: '2026-01-01T00:00:00' })).toMatchObject([
      { code: 'too_complex', field: 'rule' },
    ])
  })

  test('has no slot more than 400 years after the previous one', () => {
    const rule = {
      kind: 'rrule',
      rule: 'FREQ=DAILY;INTERVAL=366;BYMONTH=2;BYMONTHDAY=29',
      start: '2028-02-29T09:00:00',
    }

    expect(cadenceOf(rule).next(utc('2028-02-29T09:00:00'))).toBeNull()
  })
})

describe('a valid rule without a slot between its bounds', () => {
  test('is rejected with a problem in endAt, not in the rule', () => {
    const mondays = {
      kind: 'cron',
      expression: '0 9 * * 1',
      startAt: '2026-01-06T00:00:00Z',
      endAt: '2026-01-07T00:00:00Z',
    }

    expect(problemsOf(mondays)).toMatchObject([{ code: 'never_fires', field: 'endAt' }])
  })
})
