import { describe, expect, test } from 'vitest'

import { cadenceOf, problemsOf, utc } from './cadence-of.ts'

function specOf(lines: readonly string[], fields: object = {}): unknown {
  return cadenceOf({ kind: 'rrule', rule: lines.join('\r\n'), ...fields }).spec
}

describe('a block of iCalendar lines', () => {
  test('gives the same cadence as the fields', () => {
    const block = [
      'DTSTART;TZID=America/New_York:20260105T090000',
      'RRULE:FREQ=WEEKLY;BYDAY=MO,FR',
      'EXDATE;TZID=America/New_York:20260109T090000,20260112T090000',
      'RDATE:20260110T150000Z',
    ]

    expect(specOf(block)).toEqual({
      kind: 'rrule',
      rule: 'FREQ=WEEKLY;BYDAY=MO,FR',
      start: '2026-01-05T09:00:00',
      timezone: 'America/New_York',
      exdates: ['2026-01-09T09:00:00', '2026-01-12T09:00:00'],
      rdates: ['2026-01-10T15:00:00Z'],
    })
  })

  test('may be folded, and quote its zone', () => {
    const block = ['DTSTART;TZID="Europe/Madrid":20260105T090000', 'RRULE:FREQ=DAI', ' LY;COUNT=3']

    expect(specOf(block)).toMatchObject({ rule: 'FREQ=DAILY;COUNT=3', timezone: 'Europe/Madrid' })
  })

  test('takes its zone from DTSTART only, so a date in another zone is rejected', () => {
    const block = 'DTSTART:20260301T090000Z\nRRULE:FREQ=DAILY\nEXDATE;TZID=America/New_York:20260305T040000'

    expect(problemsOf({ kind: 'rrule', rule: block })).toMatchObject([
      { code: 'conflict', field: 'rule', position: 42 },
    ])
  })

  test('accepts the zone of its fields under any of its names', () => {
    const block = ['DTSTART;TZID=US/Eastern:20260105T090000', 'RRULE:FREQ=DAILY']

    expect(specOf(block, { timezone: 'america/new_york' })).toMatchObject({ timezone: 'America/New_York' })
  })

  test.each([
    ['SUMMARY:Stand-up\nRRULE:FREQ=DAILY', 'unsupported'],
    ['RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY', 'unsupported'],
    ['DTSTART:20260105T090000', 'syntax'],
    ['RRULE:FREQ=DAILY\nEXDATE:2026010', 'syntax'],
  ])('is rejected if it has an unsupported line: %j', (rule, code) => {
    expect(problemsOf({ kind: 'rrule', rule }, { now: utc('2026-01-01T00:00:00') })).toMatchObject([
      { code, field: 'rule' },
    ])
  })

  test('is rejected beside a field that it sets too', () => {
    const rule = 'DTSTART:20260105T090000\nRRULE:FREQ=DAILY'

    expect(problemsOf({ kind: 'rrule', rule, start: '2026-01-06T09:00:00' })).toMatchObject([
      { code: 'conflict', field: 'start' },
    ])
  })
})
