import { DaySet, allDays } from '../rules/day-set.ts'
import type { MonthDays } from '../rules/day-set.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, dayNumberOf, daysInYear, modulo, weekdayOf } from '../time/wall-time.ts'
import type { DayNumber, WallTime } from '../time/wall-time.ts'
import type { ByDay, RRuleParts } from './rrule-parts.ts'

/**
 * The days that match the BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY and BYDAY of an RRULE. The table of "expand" and
 * "limit" in RFC 5545 reduces to one filter over all days, because a period's days are expanded before they are limited.
 */
export function rruleDays(parts: RRuleParts): DaySet {
  const months = new Set(parts.byMonth)
  // An ordinal such as 2MO counts within the month, or within the year if the rule is yearly and names no month.
  const isOrdinalOfYear = parts.freq === 'YEARLY' && parts.byMonth.length === 0
  const filters = [
    ...(parts.byMonthDay.length > 0 ? [monthDayFilter(parts.byMonthDay)] : []),
    ...(parts.byYearDay.length > 0 ? [yearDayFilter(parts.byYearDay)] : []),
    ...(parts.byWeekNo.length > 0 ? [weekNumberFilter(parts.byWeekNo, parts.weekStart)] : []),
    ...(parts.byDay.length > 0 ? [weekdayFilter(parts.byDay, isOrdinalOfYear)] : []),
  ]
  return new DaySet((month) => {
    if (months.size > 0 && !months.has(month.month)) return 0
    let days = allDays(month)
    for (const filter of filters) {
      if (days !== 0) days &= filter(month)
    }
    return days
  })
}

function monthDayFilter(byMonthDay: readonly number[]): MonthDays {
  return ({ length }) => {
    let days = 0
    for (const number of byMonthDay) {
      const day = number > 0 ? number : length + 1 + number
      if (day >= 1 && day <= length) days |= 1 << day
    }
    return days
  }
}

// A set lookup instead of a loop over the list: a hostile list is long, and this runs for every month of a search.
function yearDayFilter(byYearDay: readonly number[]): MonthDays {
  const yearDays = new Set(byYearDay)
  return ({ year, first, length }) => {
    const before = first - dayNumberOf(year, 1, 1)
    const yearLength = daysInYear(year)
    let days = 0
    for (let day = 1; day <= length; day += 1) {
      if (yearDays.has(before + day) || yearDays.has(before + day - yearLength - 1)) days |= 1 << day
    }
    return days
  }
}

function weekNumberFilter(byWeekNo: readonly number[], weekStart: number): MonthDays {
  const weekNumbers = new Set(byWeekNo)
  return ({ year, first, length }) => {
    let days = 0
    // Week by week, because all days of a week have the same number.
    for (let week = first - modulo(weekdayOf(first) - weekStart, 7); week < first + length; week += 7) {
      if (!isNumbered(week, year, weekStart, weekNumbers)) continue
      for (let day = Math.max(week, first); day < Math.min(week + 7, first + length); day += 1) {
        days |= 1 << (day - first + 1)
      }
    }
    return days
  }
}

function weekdayFilter(byDay: readonly ByDay[], isOrdinalOfYear: boolean): MonthDays {
  const ordinalsByWeekday = new Map<number, Set<number | null>>()
  for (const { weekday, ordinal } of byDay) {
    ordinalsByWeekday.set(weekday, (ordinalsByWeekday.get(weekday) ?? new Set()).add(ordinal))
  }
  return ({ year, first, length }) => {
    const firstWeekday = weekdayOf(first)
    const before = isOrdinalOfYear ? first - dayNumberOf(year, 1, 1) : 0
    const span = isOrdinalOfYear ? daysInYear(year) : length
    let days = 0
    for (const [weekday, ordinals] of ordinalsByWeekday) {
      const isEvery = ordinals.has(null)
      for (let day = 1 + modulo(weekday - firstWeekday, 7); day <= length; day += 7) {
        const position = before + day
        const fromStart = Math.floor((position - 1) / 7) + 1
        const fromEnd = -Math.floor((span - position) / 7) - 1
        if (isEvery || ordinals.has(fromStart) || ordinals.has(fromEnd)) days |= 1 << day
      }
    }
    return days
  }
}

/**
 * True if the week that begins on day `week` has one of the numbers. A week belongs to the year that holds at least four
 * of its days. That may be the year before or after `year`, the year of the month.
 */
function isNumbered(week: DayNumber, year: number, weekStart: number, weekNumbers: ReadonlySet<number>): boolean {
  let weekYear = year
  if (week < firstWeekStart(year, weekStart)) weekYear = year - 1
  else if (week >= firstWeekStart(year + 1, weekStart)) weekYear = year + 1
  const first = firstWeekStart(weekYear, weekStart)
  const weekCount = (firstWeekStart(weekYear + 1, weekStart) - first) / 7
  const weekNumber = (week - first) / 7 + 1
  return weekNumbers.has(weekNumber) || weekNumbers.has(weekNumber - weekCount - 1)
}

/** The first day of week 1, which is the week that contains 4 January. */
function firstWeekStart(year: number, weekStart: number): DayNumber {
  const fourth = dayNumberOf(year, 1, 4)
  return fourth - modulo(weekdayOf(fourth) - weekStart, 7)
}

/** The times of day of a rule with periods of a day or more, ascending. Hours, minutes and seconds default to the start's. */
export function timesOfDayOf({ byHour, byMinute, bySecond }: RRuleParts, start: WallTime): number[] {
  const hours = byHour.length > 0 ? byHour : [Math.floor(modulo(start, DAY_MS) / HOUR_MS)]
  const minutes = byMinute.length > 0 ? byMinute : [Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)]
  const seconds = bySecond.length > 0 ? bySecond : [Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)]
  return hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS)),
  )
}
