import fc from 'fast-check'

import { NOTHING, timeOf, type Duration } from '../oracle/interval.ts'
import { MINUTE } from '../oracle/zone.ts'

/** A duration of hours, minutes and seconds, at least a minute in all. */
export function elapsedDuration(): fc.Arbitrary<Duration> {
  return fc
    .record({ hours: fc.nat({ max: 50 }), minutes: fc.nat({ max: 90 }), seconds: fc.nat({ max: 90 }) })
    .map((time) => ({ ...NOTHING, ...time }))
    .filter((duration) => timeOf(duration) >= MINUTE)
}

/** A duration of years, months, weeks or days, sometimes with hours and minutes. */
export function calendarDuration(): fc.Arbitrary<Duration> {
  const dates = fc.record({ years: rarely(3), months: rarely(14), weeks: rarely(3), days: rarely(40) })
  const some = dates.filter(({ years, months, weeks, days }) => years + months + weeks + days > 0)
  const times = fc.record({ hours: rarely(30), minutes: rarely(90) })
  return fc
    .tuple(
      fc.oneof(fc.constantFrom({ days: 1 }, { days: 2 }, { weeks: 1 }, { months: 1 }), some),
      fc.oneof(fc.constant({}), times),
    )
    .map(([date, time]) => ({ ...NOTHING, ...date, ...time }))
}

function rarely(highest: number): fc.Arbitrary<number> {
  return fc.oneof(fc.constant(0), fc.integer({ min: 1, max: highest }))
}
