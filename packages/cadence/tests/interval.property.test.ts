import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { calendarDuration, elapsedDuration } from './arbitrary/duration.ts'
import { policy } from './arbitrary/policy.ts'
import { zoneAndInstant, type ZoneAndInstant } from './arbitrary/zone-and-instant.ts'
import { cadenceOf, printAll } from './cadence-of.ts'
import { resolve } from './oracle/dst.ts'
import { addTimes, printDuration, timeOf, type Duration } from './oracle/interval.ts'
import { DAY, MINUTE, SECOND, printWall, wall, zone } from './oracle/zone.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'

/** An interval that starts some days before a transition, at a time of day near it. */
function calendarCase() {
  return (
    fc
      .record({
        duration: calendarDuration(),
        at: zoneAndInstant(),
        daysBefore: fc.nat({ max: 5 }),
        minutesLater: fc.nat({ max: 180 }),
        dst: policy(),
      })
      .map(({ at, daysBefore, minutesLater, ...rest }) => ({
        ...rest,
        zoneUnderTest: zone(at.timezone),
        start: startWall(at) - daysBefore * DAY + minutesLater * MINUTE,
      }))
      // Other tests cover a start that happens twice or does not exist.
      .filter(({ zoneUnderTest, start }) => zoneUnderTest.instantsOf(start).length === 1)
  )
}

function startWall({ timezone, instant }: ZoneAndInstant): number {
  return Math.floor(zone(timezone).wallAt(instant) / MINUTE) * MINUTE
}

function wallsOf(start: number, duration: Duration, count: number): number[] {
  return Array.from({ length: count }, (_, times) => addTimes(start, duration, times))
}

describe('intervals', { timeout: PROPERTY_TIMEOUT }, () => {
  test('in hours, minutes and seconds, slot n is the start plus n times the interval of elapsed time', () => {
    fc.assert(
      fc.property(
        elapsedDuration(),
        zoneAndInstant(),
        fc.nat({ max: 1_000_000 }),
        fc.boolean(),
        (duration, at, times, isNumber) => {
          const start = Math.floor(at.instant / SECOND) * SECOND
          const every = timeOf(duration)
          const slot = start + times * every
          const cadence = cadenceOf({
            kind: 'interval',
            every: isNumber ? every / SECOND : printDuration(duration),
            startAt: new Date(start).toISOString(),
            timezone: at.timezone,
          })

          expect(cadence.next(slot - 1)).toBe(slot)
          expect(cadence.next(slot)).toBe(slot + every)
          expect(cadence.previous(slot + 1)).toBe(slot)
          expect(cadence.previous(slot)).toBe(times === 0 ? null : slot - every)
          expect(cadence.slots(slot, { limit: 3 })).toEqual([slot, slot + every, slot + 2 * every])
        },
      ),
      { numRuns: RUNS },
    )
  })

  test('in years, months, weeks and days, slot n is the local start plus n times the interval, with the policy applied', () => {
    fc.assert(
      fc.property(calendarCase(), ({ duration, zoneUnderTest, start, dst }) => {
        const walls = wallsOf(start, duration, 20)
        const to = (walls.at(-1) ?? 0) - 2 * DAY
        const [startAt = 0] = zoneUnderTest.instantsOf(start)

        const cadence = cadenceOf({
          kind: 'interval',
          every: printDuration(duration),
          startAt: new Date(startAt).toISOString(),
          timezone: zoneUnderTest.name,
          dst,
        })

        const expected = resolve(walls, zoneUnderTest, dst).filter((slot) => slot < to)
        expect(printAll(cadence.slots(0, { to, limit: 1_000 }))).toEqual(printAll(expected))
        expect(cadence.previous(to)).toBe(expected.at(-1) ?? null)
      }),
      { numRuns: RUNS },
    )
  })

  test('a clamped day never drifts: slot n does not depend on the slots before it', () => {
    fc.assert(
      fc.property(
        calendarDuration(),
        fc.integer({ min: 28, max: 31 }),
        fc.nat({ max: 300 }),
        (duration, day, times) => {
          const start = wall(`2024-01-${day}T09:00:00`)
          const cadence = cadenceOf({
            kind: 'interval',
            every: printDuration(duration),
            startAt: `${printWall(start)}Z`,
          })
          const slot = addTimes(start, duration, times)

          expect(printAll([cadence.next(slot - 1)])).toEqual(printAll([slot]))
          expect(printAll([cadence.previous(slot + 1)])).toEqual(printAll([slot]))
        },
      ),
      { numRuns: RUNS },
    )
  })

  test('parsing the canonical form again, from JSON and without now, gives the same cadence', () => {
    fc.assert(
      fc.property(
        fc.oneof(calendarDuration(), elapsedDuration()),
        zoneAndInstant(),
        (duration, { timezone, instant }) => {
          const cadence = cadenceOf({ kind: 'interval', every: printDuration(duration), timezone }, { now: instant })

          const again = cadenceOf(JSON.parse(JSON.stringify(cadence.spec)), { minimumSeconds: 0 })

          expect(again.spec).toEqual(cadence.spec)
          expect(again.slots(instant, { limit: 5 })).toEqual(cadence.slots(instant, { limit: 5 }))
        },
      ),
      { numRuns: RUNS },
    )
  })
})

describe('an interval in calendar units', () => {
  test('31 January plus a month is the last day of February, and two months is 31 March', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 'P1M', startAt: '2027-01-31T09:00:00Z' })

    expect(printAll(cadence.slots(0, { limit: 5 })).map((slot) => slot.slice(0, 10))).toEqual([
      '2027-01-31',
      '2027-02-28',
      '2027-03-31',
      '2027-04-30',
      '2027-05-31',
    ])
  })

  test('29 February plus a year is 28 February until the next leap year', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 'P1Y', startAt: '2024-02-29T09:00:00Z' })

    expect(printAll(cadence.slots(0, { limit: 5 })).map((slot) => slot.slice(0, 10))).toEqual([
      '2024-02-29',
      '2025-02-28',
      '2026-02-28',
      '2027-02-28',
      '2028-02-29',
    ])
  })

  test('P1D is a local day, which has 23 hours across a gap, and PT24H is always 24 hours', () => {
    const start = { kind: 'interval', startAt: '2027-03-13T17:00:00Z', timezone: 'America/New_York' }

    expect(printAll(cadenceOf({ ...start, every: 'P1D' }).slots(0, { limit: 2 }))[1]).toBe('2027-03-14T16:00:00.000Z')
    expect(printAll(cadenceOf({ ...start, every: 'PT24H' }).slots(0, { limit: 2 }))[1]).toBe('2027-03-14T17:00:00.000Z')
  })

  test.each(['P1D', 'PT1H', 'P1M', 3_600])(
    'without startAt the first slot of %s lies one interval after now, to the second',
    (every) => {
      const now = Date.UTC(2027, 0, 15, 10, 20, 30, 456)
      const cadence = cadenceOf({ kind: 'interval', every }, { now })
      const expected = { P1D: '2027-01-16T10:20:30', PT1H: '2027-01-15T11:20:30', P1M: '2027-02-15T10:20:30' }[every]

      expect(printAll([cadence.next(0)])).toEqual([`${expected ?? '2027-01-15T11:20:30'}.000Z`])
    },
  )

  test.each(['P1D', 'P1M'])('%s with maxRuns 3 has three slots', (every) => {
    const cadence = cadenceOf({ kind: 'interval', every, startAt: '2027-01-31T09:00:00Z', maxRuns: 3 })
    const slots = cadence.slots(0)

    expect(slots).toHaveLength(3)
    expect(cadence.next(slots[2] ?? 0)).toBeNull()
    expect(cadence.isExhausted(slots[2] ?? 0)).toBe(true)
  })

  test('with an anchor, slots are counted from the anchor, and startAt is only the earliest slot', () => {
    const anchored = { kind: 'interval', anchor: '2027-01-31T09:00:00Z', startAt: '2027-04-01T00:00:00Z' }

    expect(
      printAll(cadenceOf({ ...anchored, every: 'P1M' }).slots(0, { limit: 3 })).map((slot) => slot.slice(0, 10)),
    ).toEqual(['2027-04-30', '2027-05-31', '2027-06-30'])
    expect(printAll([cadenceOf({ ...anchored, every: 'PT7H' }).next(0)])).toEqual(['2027-04-01T04:00:00.000Z'])
  })

  test('the slots of an elapsed interval are instants, so it has no dst policy', () => {
    expect(cadenceOf({ kind: 'interval', every: 'PT6H', startAt: '2027-01-01T00:00:00Z' }).dst).toBeNull()
    expect(cadenceOf({ kind: 'interval', every: 'P1D', startAt: '2027-01-01T00:00:00Z' }).dst).toEqual({
      gap: 'shift',
      fold: 'first',
    })
  })

  test('R5/start/P1M has five slots from its start', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 'R5/2026-01-01T09:00:00Z/P1M' })

    expect(printAll(cadence.slots(0)).map((slot) => slot.slice(0, 16))).toEqual([
      '2026-01-01T09:00',
      '2026-02-01T09:00',
      '2026-03-01T09:00',
      '2026-04-01T09:00',
      '2026-05-01T09:00',
    ])
  })

  test('R/start/PT6H has no end', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 'R/2026-01-01T09:00:00Z/PT6H' })

    expect(cadence.next(Date.UTC(2500, 0, 1, 4))).toBe(Date.UTC(2500, 0, 1, 9))
  })

  test('the last of a billion elapsed slots is computed by arithmetic, not by counting', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 60, startAt: '2026-01-01T00:00:00Z', maxRuns: 1_000_000_000 })
    const last = Date.UTC(2026, 0, 1) + 999_999_999 * MINUTE

    expect(cadence.next(last - 1)).toBe(last)
    expect(cadence.next(last)).toBeNull()
  })

  test('slots end in the year 9999', () => {
    const cadence = cadenceOf({ kind: 'interval', every: 'P1Y', startAt: '2026-06-01T00:00:00Z' })

    expect(printAll([cadence.previous(Date.UTC(9999, 11, 31))])).toEqual(['9999-06-01T00:00:00.000Z'])
    expect(cadence.next(Date.UTC(9999, 5, 1))).toBeNull()
  })
})
