import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { frequentCronExpression } from './arbitrary/cron-expression.ts'
import { zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, printAll, problemsOf } from './cadence-of.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const DAY_MS = 86_400_000
const NEW_YORK = 'America/New_York'

/** The first slots of an input, as ISO text. */
function slotsOf(input: unknown, now?: number): string[] {
  return printAll(cadenceOf(input, now === undefined ? {} : { now }).slots(0, { limit: 8 }))
}

describe('startAt, endAt and maxRuns', { timeout: PROPERTY_TIMEOUT }, () => {
  test('keep exactly the slots of the unbounded cadence that are within the bounds', () => {
    const bounded = fc.record({
      expression: frequentCronExpression(),
      place: zoneAndInstant(),
      length: fc.integer({ min: 0, max: 4 * DAY_MS }),
      maxRuns: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(bounded, ({ expression, place, length, maxRuns }) => {
        const from = Math.floor(place.instant / 1000) * 1000
        const to = Math.floor((from + length) / 1000) * 1000
        const rule = { kind: 'cron', expression, timezone: place.timezone }
        const edges = { startAt: new Date(from).toISOString(), endAt: new Date(to).toISOString() }

        const all = cadenceOf(rule).slots(from, { to: to + 1, limit: 6000 })
        const expected = all.slice(0, maxRuns)
        const parsed = parse({ ...rule, ...edges, ...(maxRuns === undefined ? {} : { maxRuns }) })

        if (!parsed.ok) {
          expect({ codes: parsed.problems.map(({ code }) => code), expected }).toEqual({
            codes: ['never_fires'],
            expected: [],
          })
          return
        }
        const { cadence } = parsed
        expect(printAll(cadence.slots(0, { limit: 6000 }))).toEqual(printAll(expected))
        expect(cadence.previous(Infinity)).toBe(expected.at(-1))
        expect(cadence.isExhausted(expected.at(-1) ?? 0)).toBe(true)
      }),
      { numRuns: RUNS },
    )
  })

  test('end the cadence at endAt or after maxRuns slots, whichever comes first', () => {
    const rule = { kind: 'rrule', rule: 'FREQ=DAILY', start: '2026-01-01T09:00:00', startAt: '2026-01-01T00:00:00Z' }

    expect(slotsOf({ ...rule, endAt: '2026-01-03T00:00:00Z', maxRuns: 5 })).toHaveLength(2)
    expect(slotsOf({ ...rule, endAt: '2026-01-09T00:00:00Z', maxRuns: 5 })).toHaveLength(5)
  })

  test('maxRuns may reach decades ahead in a zone with DST, and a cadence beyond that is too complex', () => {
    const yearly = { kind: 'cron', expression: '0 9 1 1 *', timezone: NEW_YORK, startAt: '2027-01-01T00:00:00Z' }

    expect(cadenceOf({ ...yearly, maxRuns: 45 }).previous(Infinity)).toBe(Date.parse('2071-01-01T14:00:00Z'))
    expect(problemsOf({ ...yearly, maxRuns: 100 })).toMatchObject([{ code: 'too_complex', field: 'maxRuns' }])
  })

  test('endAt in a gap ends before the gap, and endAt in a fold includes both passes', () => {
    const daily = (expression: string, startAt: string, endAt: string): string[] =>
      slotsOf({ kind: 'cron', expression, timezone: NEW_YORK, startAt, endAt, dst: { fold: 'both' } })

    expect(daily('0 3 * * *', '2027-03-14T00:00:00', '2027-03-14T02:30:00-05:00')).toEqual(['2027-03-14T07:00:00.000Z'])
    expect(
      problemsOf({
        kind: 'cron',
        expression: '0 3 * * *',
        timezone: NEW_YORK,
        startAt: '2027-03-14T00:00:00',
        endAt: '2027-03-14T02:30:00',
      }),
    ).toMatchObject([{ code: 'never_fires' }])
    expect(daily('30 1 * * *', '2026-11-01T00:00:00', '2026-11-01T01:30:00')).toEqual([
      '2026-11-01T05:30:00.000Z',
      '2026-11-01T06:30:00.000Z',
    ])
  })
})

describe('UNTIL as an instant', () => {
  const halfHours = { kind: 'rrule', start: '2026-11-01T00:30:00', timezone: NEW_YORK }

  test('ends a rule in the pass of the repeated hour that contains the instant', () => {
    expect(slotsOf({ ...halfHours, rule: 'FREQ=MINUTELY;INTERVAL=30;UNTIL=20261101T061500Z' })).toEqual([
      '2026-11-01T04:30:00.000Z',
      '2026-11-01T05:00:00.000Z',
      '2026-11-01T05:30:00.000Z',
      '2026-11-01T06:00:00.000Z',
    ])
  })

  test('does not remove later rdates, and earlier rdates do not extend the rule', () => {
    const rule = { ...halfHours, start: '2026-10-31T01:00:00', rule: 'FREQ=DAILY;UNTIL=20261101T051500Z' }

    expect(slotsOf({ ...rule, dst: { fold: 'both' }, rdates: ['2026-12-01T01:00:00'] })).toEqual([
      '2026-10-31T05:00:00.000Z',
      '2026-11-01T05:00:00.000Z',
      '2026-12-01T06:00:00.000Z',
    ])
  })
})

describe('exdates and rdates as instants', () => {
  test('name exact slots where a local time would be ambiguous', () => {
    const nightly = { kind: 'rrule', rule: 'FREQ=DAILY', timezone: NEW_YORK }

    // 02:30 does not exist that day and is shifted to 07:00Z.
    expect(
      slotsOf({ ...nightly, start: '2027-03-13T02:30:00', exdates: ['2027-03-14T07:00:00Z'] }).slice(0, 2),
    ).toEqual(['2027-03-13T07:30:00.000Z', '2027-03-15T06:30:00.000Z'])
    const twice = { ...nightly, rule: 'FREQ=DAILY;COUNT=1', start: '2026-11-01T01:30:00' }
    expect(slotsOf({ ...twice, rdates: ['2026-11-01T06:30:00Z'] })).toEqual([
      '2026-11-01T05:30:00.000Z',
      '2026-11-01T06:30:00.000Z',
    ])
  })

  test('an exdate without a time removes every slot of that local day, including rdates', () => {
    const rule = { kind: 'rrule', rule: 'FREQ=DAILY;COUNT=2', start: '2027-01-01T09:00:00', timezone: NEW_YORK }

    expect(
      slotsOf({ ...rule, exdates: ['2027-01-01'], rdates: ['2027-01-01T12:00:00', '2027-01-02T04:59:00Z'] }),
    ).toEqual(['2027-01-02T14:00:00.000Z'])
  })
})

describe('rdates', () => {
  const daily = { kind: 'rrule', rule: 'FREQ=DAILY', start: '2026-01-05T09:00:00' }

  test('are rejected as too close only if the slot beside them exists', () => {
    const hours = { kind: 'rrule', rule: 'FREQ=MINUTELY;UNTIL=20260101T090000Z', start: '2026-01-01T08:00:00' }

    expect(cadenceOf({ ...hours, rdates: ['2026-01-01T09:30:30Z'] }).previous(Infinity)).toBe(
      Date.UTC(2026, 0, 1, 9, 30, 30),
    )
    expect(problemsOf({ ...hours, rdates: ['2026-01-01T08:30:30Z'] })).toMatchObject([{ code: 'too_frequent' }])
    expect(
      slotsOf({ ...daily, exdates: ['2026-01-06T09:00:00Z'], rdates: ['2026-01-06T09:00:30Z'] }).slice(0, 2),
    ).toEqual(['2026-01-05T09:00:00.000Z', '2026-01-06T09:00:30.000Z'])
  })

  test('are removed by exdates in any notation', () => {
    for (const exdate of ['2026-01-04T09:00:00', '2026-01-04T09:00:00Z', '2026-01-04']) {
      const input = { ...daily, rdates: ['2026-01-04T09:00:00Z'], exdates: [exdate] }
      expect(slotsOf(input)[0]).toBe('2026-01-05T09:00:00.000Z')
    }
  })

  test('may be at the first instant that a slot can have', () => {
    expect(slotsOf({ ...daily, rdates: ['1970-01-02T00:00:00'] })[0]).toBe('1970-01-02T00:00:00.000Z')
  })
})

describe('an instant passed to next, previous or local', () => {
  const hourly = cadenceOf({ kind: 'cron', expression: '@hourly' })
  const slot = Date.UTC(2027, 0, 1, 9)

  test('may have a fraction of a millisecond, which is not rounded away', () => {
    expect(hourly.next(slot - 0.5)).toBe(slot)
    expect(hourly.previous(slot + 0.5)).toBe(slot)
    expect(hourly.slots(slot + 0.5, { limit: 1 })).toEqual([slot + 3_600_000])
  })

  test('must be a number, and within the calendar to be formatted', () => {
    expect(() => hourly.next(NaN)).toThrow(RangeError)
    expect(() => hourly.local(Infinity)).toThrow(RangeError)
    expect(hourly.local(0)).toBe('1970-01-01T00:00:00+00:00[UTC]')
  })
})

describe('an anchor', () => {
  test('keeps the day of month that a calendar interval was created on, even after shorter months', () => {
    const now = Date.parse('2027-01-31T12:00:00Z')

    expect(slotsOf({ kind: 'interval', every: 'P1M' }, now).slice(0, 4)).toEqual([
      '2027-02-28T12:00:00.000Z',
      '2027-03-31T12:00:00.000Z',
      '2027-04-30T12:00:00.000Z',
      '2027-05-31T12:00:00.000Z',
    ])
  })

  test('is within the calendar, so that the spec can be parsed again', () => {
    const early = { startAt: '1970-01-01T00:00:00Z', timezone: NEW_YORK }
    const biweekly = cadenceOf({ kind: 'frequency', frequency: 'biweekly', dayOfWeek: 3, timeOfDay: '20:00', ...early })

    expect(cadenceOf(biweekly.spec).spec).toEqual(biweekly.spec)
    expect(
      problemsOf({ kind: 'rrule', rule: 'FREQ=DAILY', start: '1970-01-01T00:00:00Z', timezone: NEW_YORK }),
    ).toMatchObject([{ code: 'out_of_range', field: 'start' }])
  })

  test('is rejected if it is an instant whose local time happens twice', () => {
    const instant = '2026-11-01T06:30:00Z'

    expect(problemsOf({ kind: 'interval', every: 'P1D', startAt: instant, timezone: NEW_YORK })).toMatchObject([
      { code: 'conflict', field: 'startAt' },
    ])
    expect(problemsOf({ kind: 'rrule', rule: 'FREQ=DAILY', start: instant, timezone: NEW_YORK })).toMatchObject([
      { code: 'conflict', field: 'start' },
    ])
  })
})

describe('a wrong endAt', () => {
  test('is the only problem: other times are not reported', () => {
    const rule = { kind: 'rrule', rule: 'FREQ=DAILY', timezone: NEW_YORK, start: `2027-01-01T09:00:00[${NEW_YORK}]` }

    expect(problemsOf({ ...rule, endAt: 'never' })).toMatchObject([{ code: 'syntax', field: 'endAt' }])
  })
})

describe('the first and last slots of the calendar', () => {
  test.each([
    { kind: 'interval', every: 'P1D', startAt: '9990-01-01T01:00:00', timezone: 'Pacific/Auckland' },
    { kind: 'cron', expression: '0 1 * * *', timezone: 'Pacific/Auckland' },
    { kind: 'cron', expression: '30 19 31 12 *', timezone: NEW_YORK },
    { kind: 'rrule', rule: 'FREQ=YEARLY', start: '1970-01-01T00:00:00', timezone: 'Pacific/Kiritimati' },
  ])('are the same from next and previous, and can be formatted: %j', (input) => {
    const cadence = cadenceOf(input)
    const first = cadence.next(-Infinity) ?? 0
    const last = cadence.previous(Infinity) ?? 0

    expect(cadence.previous(first)).toBeNull()
    expect(cadence.next(last)).toBeNull()
    expect(cadence.next(last - 1)).toBe(last)
    expect(cadence.previous(first + 1)).toBe(first)
    for (const slot of [first, last]) expect(cadence.local(slot)).toMatch(/^(19[789]|99|[2-8])\d+-\d\d-\d\dT/)
  })
})

describe('the canonical spec', () => {
  test.each([
    ['cron', '0 9 * * MON-FRI', '00 09 * * 1,2,3,4,5'],
    ['cron', '*/15 * * * *', '0,15,30,45 0-23 * 1-12 *'],
    ['cron', '0 0 * * 7', '0 0 * * SUN'],
    ['cron', '@daily', '0 0 * * *'],
  ])('is the same for equivalent inputs: %s %s and %s', (kind, one, other) => {
    expect(cadenceOf({ kind, expression: one }).spec).toEqual(cadenceOf({ kind, expression: other }).spec)
  })

  test('of an RRULE does not depend on the order, the case or the repetition of its parts', () => {
    const start = '2027-01-01T00:00:00'

    expect(cadenceOf({ kind: 'rrule', rule: 'byhour=09,9,8;freq=daily;interval=01;', start }).spec).toEqual(
      cadenceOf({ kind: 'rrule', rule: 'RRULE:FREQ=DAILY;BYHOUR=8,9', start, dst: {} }).spec,
    )
  })

  test.each([
    { kind: 'interval', every: 'P1M' },
    { kind: 'interval', every: 'PT15M', maxRuns: 3 },
    { kind: 'rrule', rule: 'FREQ=DAILY', maxRuns: 3 },
    { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00' },
    { kind: 'cron', expression: '@daily', maxRuns: 3 },
  ])('is parsed to a cadence with the same description: %j', (input) => {
    const written = cadenceOf(input, { now: Date.parse('2027-01-31T12:00:00Z') })

    expect(cadenceOf(written.spec).describe()).toBe(written.describe())
  })

  test('is a frozen object', () => {
    expect(Object.isFrozen(cadenceOf({ kind: 'cron', expression: '@daily' }).spec)).toBe(true)
  })

  test('is accepted again with minimumSeconds 0, whatever the distance of its slots', () => {
    const { spec } = cadenceOf({ kind: 'interval', every: 1, startAt: '2027-01-01T00:00:00Z' }, { minimumSeconds: 1 })

    expect(problemsOf(spec)).toMatchObject([{ code: 'too_frequent' }])
    expect(cadenceOf(spec, { minimumSeconds: 0 }).spec).toEqual(spec)
  })
})
