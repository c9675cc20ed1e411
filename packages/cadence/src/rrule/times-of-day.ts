import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, modulo } from '../wall.ts'
import type { Wall } from '../wall.ts'
import type { RRuleParts } from './rrule-parts.ts'

/** The times of day of a rule with periods of a day or more, ascending. What it does not say, its start says. */
export function timesOfDayOf({ byHour, byMinute, bySecond }: RRuleParts, start: Wall): number[] {
  const hours = byHour.length > 0 ? byHour : [Math.floor(modulo(start, DAY_MS) / HOUR_MS)]
  const minutes = byMinute.length > 0 ? byMinute : [Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)]
  const seconds = bySecond.length > 0 ? bySecond : [Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)]
  return hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS)),
  )
}
