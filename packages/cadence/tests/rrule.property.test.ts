import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { parse } from '../src/index.ts'
import { policy } from './arbitrary/policy.ts'
import { anyRule, frequentRule } from './arbitrary/rrule-text.ts'
import { zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, printAll, type Cadence } from './cadence-of.ts'
import { resolve, type Policy } from './oracle/dst.ts'
import { expand, readRule } from './oracle/rrule-matcher.ts'
import { DAY, HOUR, MINUTE, printWall, SECOND, zone, type Zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

interface Case {
  readonly rule: string
  readonly place: Zone
  /** DTSTART, up to six days before the instant, which is mostly at a transition. */
  readonly start: number
  readonly dst: Policy
}

const SPAN = 10 * DAY

function zonedCase(rule: fc.Arbitrary<string>): fc.Arbitrary<Case> {
  const before = fc.oneof(
    fc.integer({ min: 0, max: 6 * 24 * 4 }).map((quarters) => quarters * 15 * MINUTE),
    fc.integer({ min: 0, max: 6 * 24 * 60 }).map((minutes) => minutes * MINUTE),
  )
  return fc
    .record({ rule, at: zoneAndInstant(), before, dst: policy() })
    .map(({ rule: text, at, before: away, dst }) => {
      const place = zone(at.timezone)
      const start = Math.floor((place.wallAt(at.instant) - away) / SECOND) * SECOND
      return { rule: text, place, start: Math.floor(start / (15 * MINUTE)) * 15 * MINUTE, dst }
    })
}

function build({ rule, place, start, dst }: Case, more: object = {}): Cadence {
  return cadenceOf(
    { kind: 'rrule', rule, start: printWall(start), timezone: place.name, dst, ...more },
    { minimumSeconds: 1 },
  )
}

describe('rrule in a zone', { timeout: PROPERTY_TIMEOUT }, () => {
  test('the slots are the local times of the rule, with the policy applied', () => {
    fc.assert(
      fc.property(zonedCase(frequentRule()), (chosen) => {
        const { rule, place, start, dst } = chosen
        const { walls } = expand(readRule(rule), start, start + SPAN, 10_000)
        const to = start + SPAN - 2 * DAY

        const slots = build(chosen).slots(0, { to, limit: 10_000 })

        expect(printAll(slots)).toEqual(printAll(resolve(walls, place, dst).filter((slot) => slot < to)))
      }),
      { numRuns: RUNS },
    )
  })

  test('COUNT counts local times before exdates are removed, and does not count rdates', () => {
    const extras = fc.record({
      count: fc.integer({ min: 1, max: 40 }),
      dropped: fc.uniqueArray(fc.nat({ max: 45 }), { maxLength: 5 }),
      droppedDays: fc.uniqueArray(fc.nat({ max: 6 }), { maxLength: 2 }),
      added: fc.uniqueArray(fc.integer({ min: 0, max: 7 * 24 * 12 }), { maxLength: 5 }),
    })
    fc.assert(
      fc.property(zonedCase(frequentRule()), extras, (chosen, { count, dropped, droppedDays, added }) => {
        const { rule, place, start, dst } = chosen
        const counted = `${rule};COUNT=${count}`
        const { walls } = expand(readRule(counted), start, start + 60 * 366 * DAY, 10_000)
        const days = droppedDays.map((day) => Math.floor(start / DAY) * DAY + day * DAY)
        const exact = dropped.map((index) => walls[index]).filter((at) => at !== undefined)
        const rdates = added.map((fives) => start + fives * 5 * MINUTE)
        const kept = [...walls, ...rdates].filter(
          (at) => !exact.includes(at) && !days.includes(Math.floor(at / DAY) * DAY),
        )
        const expected = resolve(kept, place, dst)
        fc.pre(expected.length > 0)

        const cadence = build(
          { ...chosen, rule: counted },
          {
            exdates: [...exact.map(printWall), ...days.map((day) => printWall(day).slice(0, 10))],
            rdates: rdates.map(printWall),
          },
        )

        expect(printAll(cadence.slots(0, { limit: 1_000 }))).toEqual(printAll(expected))
        expect(cadence.isExhausted(expected.at(-1) ?? 0)).toBe(true)
      }),
      { numRuns: RUNS },
    )
  })

  test('next, previous and slots agree, and parsing the spec again changes nothing', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(anyRule(), zoneAndInstant(), policy(), share, ({ rule, start }, { timezone }, dst, part) => {
        const input = { kind: 'rrule', rule, start: printWall(start), timezone, dst }
        const parsed = parse(input, { minimumSeconds: 1 })
        // The reference test checks that rejections are right.
        if (!parsed.ok) return
        const { cadence } = parsed

        const slots = cadence.slots(start - 2 * DAY, { limit: 4 })
        const [first = Number.NaN, second] = slots

        expect(slots.length).toBeGreaterThan(0)
        expect(cadence.next(start - 2 * DAY)).toBe(first)
        expect(cadence.previous(first)).toBeNull()
        expect(cadence.next(first)).toBe(second ?? null)
        if (second === undefined) return
        expect(second).toBeGreaterThan(first)
        expect(cadence.previous(second)).toBe(first)
        expect(cadence.next(Math.min(second - 1, first + Math.floor((second - first) * part)))).toBe(second)
        expect(cadence.previous(slots.at(-1) ?? 0)).toBe(slots.at(-2))
      }),
      { numRuns: RUNS },
    )
  })

  test('parsing the canonical form again, from JSON, gives the same cadence', () => {
    fc.assert(
      fc.property(zonedCase(frequentRule()), (chosen) => {
        const cadence = build(chosen)

        const again = cadenceOf(JSON.parse(JSON.stringify(cadence.spec)), { minimumSeconds: 0 })

        expect(again.spec).toEqual(cadence.spec)
        expect(again.slots(chosen.start, { limit: 20 })).toEqual(cadence.slots(chosen.start, { limit: 20 }))
      }),
      { numRuns: RUNS },
    )
  })
})

describe('the fields of an rrule', () => {
  test('a block of iCalendar lines gives the same cadence as the fields', () => {
    const block = [
      'DTSTART;TZID=America/New_York:20270312T023000',
      'RRULE:FREQ=DAILY;COUNT=6',
      'EXDATE;TZID=America/New_York:20270313T023000',
      'RDATE;TZID=America/New_York:20270313T120000',
    ].join('\n')
    const fields = cadenceOf({
      kind: 'rrule',
      rule: 'FREQ=DAILY;COUNT=6',
      start: '2027-03-12T02:30:00',
      timezone: 'America/New_York',
      exdates: ['2027-03-13T02:30:00'],
      rdates: ['2027-03-13T12:00:00'],
    })

    const cadence = cadenceOf({ kind: 'rrule', rule: block })

    expect(cadence.timezone).toBe('America/New_York')
    expect(cadence.slots(0)).toEqual(fields.slots(0))
    expect(cadence.slots(0)).toHaveLength(6)
  })

  test.each([
    { until: '20270312T010000Z', last: '2027-03-11T20:00:00-05:00', why: 'an instant, inclusive' },
    { until: '20270312T005959Z', last: '2027-03-10T20:00:00-05:00', why: 'an instant, one second before a slot' },
    { until: '20270312T200000', last: '2027-03-12T20:00:00-05:00', why: 'a local time, inclusive' },
    { until: '20270312T195959', last: '2027-03-11T20:00:00-05:00', why: 'a local time, one second before a slot' },
    { until: '20270312', last: '2027-03-12T20:00:00-05:00', why: 'a date, the whole day' },
  ])('UNTIL=$until is $why', ({ until, last }) => {
    const cadence = cadenceOf({
      kind: 'rrule',
      rule: `FREQ=DAILY;UNTIL=${until}`,
      start: '2027-03-05T20:00:00',
      timezone: 'America/New_York',
    })

    const end = cadence.previous(Date.UTC(2040, 0, 1))

    expect(zone('America/New_York').print(end ?? 0)).toBe(last)
  })

  test('an exdate that is an instant removes exactly that slot', () => {
    const cadence = cadenceOf({
      kind: 'rrule',
      rule: 'FREQ=DAILY;COUNT=3',
      start: '2027-03-13T20:00:00',
      timezone: 'America/New_York',
      exdates: ['2027-03-15T00:00:00Z'],
    })

    expect(printAll(cadence.slots(0))).toEqual(['2027-03-14T01:00:00.000Z', '2027-03-16T00:00:00.000Z'])
  })

  test('an rdate that is an instant is exactly that slot, in either pass of a fold', () => {
    const cadence = cadenceOf({
      kind: 'rrule',
      rule: 'FREQ=DAILY;COUNT=1',
      start: '2027-11-06T12:00:00',
      timezone: 'America/New_York',
      rdates: ['2027-11-07T06:30:00Z', '2027-11-07T01:45:00'],
    })

    expect(printAll(cadence.slots(0)).map((slot) => slot.slice(0, 16))).toEqual([
      '2027-11-06T16:00',
      '2027-11-07T05:45',
      '2027-11-07T06:30',
    ])
  })

  test('a rule without start begins at now, rounded down to the second, and its spec contains that start', () => {
    const now = Date.UTC(2027, 2, 12, 14, 30, 15, 678)

    const cadence = cadenceOf({ kind: 'rrule', rule: 'FREQ=DAILY', timezone: 'Asia/Kolkata' }, { now })

    expect(printAll(cadence.slots(0, { limit: 2 }))).toEqual(['2027-03-12T14:30:15.000Z', '2027-03-13T14:30:15.000Z'])
    expect(cadenceOf(cadence.spec).slots(0, { limit: 9 })).toEqual(cadence.slots(0, { limit: 9 }))
  })

  test('start is a slot only if the rule matches it', () => {
    const cadence = cadenceOf({ kind: 'rrule', rule: 'FREQ=WEEKLY;BYDAY=MO;COUNT=2', start: '2027-03-12T09:00:00' })

    expect(printAll(cadence.slots(0))).toEqual(['2027-03-15T09:00:00.000Z', '2027-03-22T09:00:00.000Z'])
  })

  test.each([
    { rule: 'FREQ=DAILY', policy: 'shift first' },
    { rule: 'FREQ=HOURLY', policy: 'skip both' },
    { rule: 'FREQ=HOURLY;INTERVAL=2', policy: 'shift first' },
    { rule: 'FREQ=MINUTELY;INTERVAL=60', policy: 'skip both' },
    { rule: 'FREQ=MINUTELY;INTERVAL=61', policy: 'shift first' },
    { rule: 'FREQ=MINUTELY;INTERVAL=15', policy: 'skip both' },
    { rule: 'FREQ=DAILY;BYHOUR=1,2', policy: 'shift both' },
    { rule: 'FREQ=DAILY;BYHOUR=1,3', policy: 'shift first' },
    { rule: 'FREQ=DAILY;BYHOUR=0,23', policy: 'shift first' },
    { rule: 'FREQ=MONTHLY;BYHOUR=3;BYMINUTE=0,30', policy: 'shift both' },
    { rule: 'FREQ=DAILY;BYHOUR=1,2;BYSETPOS=1', policy: 'shift first' },
    { rule: 'FREQ=HOURLY;BYHOUR=9', policy: 'shift first' },
    { rule: 'FREQ=HOURLY;BYHOUR=9,10', policy: 'shift both' },
    { rule: 'FREQ=HOURLY;BYMINUTE=0,30', policy: 'skip both' },
  ])('$rule has the default policy $policy', ({ rule, policy: expected }) => {
    const { dst } = cadenceOf({ kind: 'rrule', rule, start: '2027-01-01T00:00:00', timezone: 'Europe/London' })

    expect(`${dst?.gap} ${dst?.fold}`).toBe(expected)
  })

  test.each([{ hours: HOUR }, { hours: 3 * HOUR }])(
    'a start in a gap is handled like any other local time ($hours ms apart)',
    ({ hours }) => {
      const rule = `FREQ=HOURLY;INTERVAL=${hours / HOUR}`
      const cadence = cadenceOf({
        kind: 'rrule',
        rule,
        start: '2027-03-14T02:30:00',
        timezone: 'America/New_York',
        dst: { gap: 'shift' },
      })

      expect(cadence.next(0)).toBe(Date.UTC(2027, 2, 14, 7, 0))
    },
  )
})
