import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { policy } from './arbitrary/policy.ts'
import { zoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, printAll, utc } from './cadence-of.ts'
import { resolve } from './oracle/dst.ts'
import { frequencyWalls, type Frequency } from './oracle/frequency.ts'
import { DAY, MINUTE, printWall, wall, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

const SPAN = 200 * DAY

function frequencyCase() {
  const minute = fc.oneof(fc.nat({ max: 4 * 60 }), fc.nat({ max: 24 * 60 - 1 }))
  return fc
    .record({
      frequency: fc.constantFrom('weekly', 'biweekly', 'monthly'),
      dayOfWeek: fc.nat({ max: 6 }),
      minute,
      at: zoneAndInstant(),
      before: fc.nat({ max: 60 }),
      dst: policy(),
    })
    .map(({ frequency, dayOfWeek, minute: minuteOfDay, at, before, dst }) => {
      const today = Math.floor(zone(at.timezone).wallAt(at.instant) / DAY) * DAY - before * DAY
      const anchor = today + ((dayOfWeek - new Date(today).getUTCDay() + 7) % 7) * DAY
      const rule: Frequency = { frequency, dayOfWeek, time: minuteOfDay * MINUTE, anchor }
      const input = {
        kind: 'frequency',
        frequency,
        dayOfWeek,
        timeOfDay: printWall(rule.time).slice(11, 16),
        timezone: at.timezone,
        dst,
        ...(frequency === 'biweekly' ? { anchor: printWall(anchor).slice(0, 10) } : {}),
      }
      return { rule, input, place: zone(at.timezone), instant: at.instant, dst }
    })
}

describe('frequencies', { timeout: PROPERTY_TIMEOUT }, () => {
  test('the slots are the days that the oracle accepts, with the policy applied to their times', () => {
    fc.assert(
      fc.property(frequencyCase(), ({ rule, input, place, dst }) => {
        const from = rule.anchor + 2 * DAY
        const to = rule.anchor + SPAN
        const walls = frequencyWalls(rule, rule.anchor - 2 * DAY, to + 2 * DAY)

        const slots = cadenceOf(input).slots(from, { to, limit: 1_000 })

        const expected = resolve(walls, place, dst).filter((slot) => slot >= from && slot < to)
        expect(printAll(slots)).toEqual(printAll(expected))
      }),
      { numRuns: RUNS },
    )
  })

  test('next, previous and the canonical form give the same slots', () => {
    fc.assert(
      fc.property(frequencyCase(), ({ input, instant }) => {
        const cadence = cadenceOf(input)
        const again = cadenceOf(JSON.parse(JSON.stringify(cadence.spec)), { minimumSeconds: 0 })
        const next = cadence.next(instant) ?? 0
        const afterNext = cadence.next(next) ?? 0

        expect(next).toBeGreaterThan(instant)
        expect(afterNext).toBeGreaterThan(next)
        expect(cadence.previous(afterNext)).toBe(next)
        expect(cadence.next(next - 1)).toBe(next)
        expect(again.spec).toEqual(cadence.spec)
        expect(again.slots(instant, { limit: 3 })).toEqual(cadence.slots(instant, { limit: 3 }))
      }),
      { numRuns: RUNS },
    )
  })

  // The distance is in local days, so the time of day stays the same across DST changes.
  test.each([
    { frequency: 'weekly', days: 7 },
    { frequency: 'biweekly', days: 14 },
  ])('$frequency slots are $days local days apart, across DST changes too', ({ frequency, days }) => {
    const newYork = zone('America/New_York')
    const cadence = cadenceOf({
      kind: 'frequency',
      frequency,
      dayOfWeek: 1,
      timeOfDay: '09:00',
      timezone: 'America/New_York',
      ...(frequency === 'biweekly' ? { anchor: '2026-01-05' } : {}),
    })

    const walls = cadence.slots(utc('2026-01-05T00:00:00'), { limit: 200 }).map((slot) => newYork.wallAt(slot))

    expect(walls.map(printWall)).toEqual(
      walls.map((_, index) => printWall(wall('2026-01-05T09:00:00') + index * days * DAY)),
    )
  })
})

describe('a frequency', () => {
  // A monthly frequency has its slot on the first such weekday of each month.
  test.each([
    { now: '2027-03-01T08:59:59', next: '2027-03-01T09:00:00', why: 'the slot of this month is one second ahead' },
    {
      now: '2027-03-01T09:00:00',
      next: '2027-04-05T09:00:00',
      why: 'the slot of this month is now, which does not count',
    },
    { now: '2027-02-28T00:00:00', next: '2027-03-01T09:00:00', why: 'the first of the month is a Monday' },
    { now: '2027-05-31T12:00:00', next: '2027-06-07T09:00:00', why: 'the last of the month was a Monday' },
    { now: '2027-01-01T00:00:00', next: '2027-01-04T09:00:00', why: 'a new year' },
  ])('the monthly slot on a Monday after $now is $next: $why', ({ now, next }) => {
    const cadence = cadenceOf(
      { kind: 'frequency', frequency: 'monthly', dayOfWeek: 1, timeOfDay: '09:00' },
      { now: utc(now) },
    )

    expect(cadence.next(utc(now))).toBe(utc(next))
  })

  test.each([0, 1, 2, 3, 4, 5, 6])('dayOfWeek %i is that day of the week, where 0 is Sunday', (dayOfWeek) => {
    const cadence = cadenceOf({ kind: 'frequency', frequency: 'weekly', dayOfWeek, timeOfDay: '23:59' })

    expect(new Date(cadence.next(utc('2027-03-01T00:00:00')) ?? 0).getUTCDay()).toBe(dayOfWeek)
  })

  test('a biweekly frequency without an anchor starts on the first such day after now, and its spec contains that anchor', () => {
    const now = utc('2027-03-03T12:00:00')
    const cadence = cadenceOf({ kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00' }, { now })

    expect(printAll(cadence.slots(now, { limit: 2 }))).toEqual(['2027-03-08T09:00:00.000Z', '2027-03-22T09:00:00.000Z'])
    expect(cadenceOf(cadence.spec).slots(now, { limit: 9 })).toEqual(cadence.slots(now, { limit: 9 }))
  })

  test('a biweekly frequency whose anchor is another day of the week starts on the first such day after it', () => {
    const cadence = cadenceOf({
      kind: 'frequency',
      frequency: 'biweekly',
      dayOfWeek: 1,
      timeOfDay: '09:00',
      anchor: '2027-01-05',
    })

    expect(printAll(cadence.slots(0, { limit: 2 }))).toEqual(['2027-01-11T09:00:00.000Z', '2027-01-25T09:00:00.000Z'])
  })

  test('a biweekly frequency starts today if today is its day and its time is still ahead', () => {
    const now = utc('2027-03-01T08:00:00')
    const cadence = cadenceOf({ kind: 'frequency', frequency: 'biweekly', dayOfWeek: 1, timeOfDay: '09:00' }, { now })

    expect(cadence.next(now)).toBe(utc('2027-03-01T09:00:00'))
  })
})
