import { DaySet, allDays } from '../day-set.ts'
import type { MonthDays } from '../day-set.ts'
import { dayNumberOf, daysInYear, modulo, weekdayOf } from '../wall.ts'
import type { DayNumber } from '../wall.ts'
import type { ByDay, RRuleParts } from './rrule-parts.ts'

/**
 * The days that an RRULE's BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY and BYDAY admit. The RFC's table of "expand" and
 * "limit" comes to one filter over all days, because a period's days are expanded before they are limited.
 */
export function rruleDays(parts: RRuleParts): DaySet {
  const months = new Set(parts.byMonth)
  // An ordinal counts within the month, or within the year where no month is named.
  const isOrdinalOfYear = parts.freq === 'YEARLY' && parts.byMonth.length === 0
  const filters = [
    ...(parts.byMonthDay.length > 0 ? [monthDayFilter(parts.byMonthDay)] : []),
    ...(parts.byYearDay.length > 0 ? [yearDayFilter(parts.byYearDay)] : []),
    ...(parts.byWeekNo.length > 0 ? [weekNumberFilter(parts.byWeekNo, parts.weekStart)] : []),
    ...(parts.byDay.length > 0 ? [weekdayFilter(parts.byDay, isOrdinalOfYear)] : []),
  ]
  return new DaySet((month) => {
    if (months.size > 0 && !months.has(month.month)) return 0
    return filters.reduce((days, filter) => days & filter(month), allDays(month))
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

function yearDayFilter(byYearDay: readonly number[]): MonthDays {
  return ({ year, first, length }) => {
    const before = first - dayNumberOf(year, 1, 1)
    let days = 0
    for (const number of byYearDay) {
      const day = (number > 0 ? number : daysInYear(year) + 1 + number) - before
      if (day >= 1 && day <= length) days |= 1 << day
    }
    return days
  }
}

function weekNumberFilter(byWeekNo: readonly number[], weekStart: number): MonthDays {
  const weekNumbers = new Set(byWeekNo)
  return ({ year, first, length }) => {
    let days = 0
    for (let day = 1; day <= length; day += 1) {
      if (isInWeek(first + day - 1, year, weekStart, weekNumbers)) days |= 1 << day
    }
    return days
  }
}

function weekdayFilter(byDay: readonly ByDay[], isOrdinalOfYear: boolean): MonthDays {
  return ({ year, first, length }) => {
    const firstWeekday = weekdayOf(first)
    const before = isOrdinalOfYear ? first - dayNumberOf(year, 1, 1) : 0
    const span = isOrdinalOfYear ? daysInYear(year) : length
    let days = 0
    for (const { weekday, ordinal } of byDay) {
      for (let day = 1 + modulo(weekday - firstWeekday, 7); day <= length; day += 7) {
        const position = before + day
        const fromStart = Math.floor((position - 1) / 7) + 1
        const fromEnd = -Math.floor((span - position) / 7) - 1
        if (ordinal === null || ordinal === fromStart || ordinal === fromEnd) days |= 1 << day
      }
    }
    return days
  }
}

/** A week belongs to the year that holds at least four of its days, so a day may lie in a week of the year beside its own. */
function isInWeek(day: DayNumber, year: number, weekStart: number, weekNumbers: ReadonlySet<number>): boolean {
  let weekYear = year
  if (day < firstWeekStart(year, weekStart)) weekYear = year - 1
  else if (day >= firstWeekStart(year + 1, weekStart)) weekYear = year + 1
  const first = firstWeekStart(weekYear, weekStart)
  const weekCount = (firstWeekStart(weekYear + 1, weekStart) - first) / 7
  const weekNumber = Math.floor((day - first) / 7) + 1
  return weekNumbers.has(weekNumber) || weekNumbers.has(weekNumber - weekCount - 1)
}

/** The first day of week 1: the week with 4 January in it. */
function firstWeekStart(year: number, weekStart: number): DayNumber {
  const fourth = dayNumberOf(year, 1, 4)
  return fourth - modulo(weekdayOf(fourth) - weekStart, 7)
}
