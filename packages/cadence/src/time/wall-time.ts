/**
 * Local date and time without a zone, encoded as the epoch milliseconds that the same date and time has in UTC.
 * Arithmetic on it is exact because no DST change can occur. Only `slots/slot-walk.ts` turns wall times into instants.
 */
export type WallTime = number

export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Days since 1970-01-01 in the proleptic Gregorian calendar. */
export type DayNumber = number

/** First and last year a wall time may have. */
export const FIRST_YEAR = 1970
export const LAST_YEAR = 9999

export interface CalendarDate {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  /** 1 to 31. */
  readonly day: number
}

const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const
const DAYS_PER_ERA = 146_097 // 400 Gregorian years
const DAYS_BEFORE_EPOCH = 719_468 // from 0000-03-01 to 1970-01-01

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

export function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : (MONTH_LENGTHS[month - 1] ?? 0)
}

export function daysInYear(year: number): number {
  return isLeapYear(year) ? 366 : 365
}

// Years are counted from March, which puts the leap day last. So `dayNumberOf` and `dateOf` need no table of month lengths.
export function dayNumberOf(year: number, month: number, day: number): DayNumber {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const monthFromMarch = (month + 9) % 12
  const dayOfYear = Math.floor((153 * monthFromMarch + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * DAYS_PER_ERA + dayOfEra - DAYS_BEFORE_EPOCH
}

export function dateOf(dayNumber: DayNumber): CalendarDate {
  const shifted = dayNumber + DAYS_BEFORE_EPOCH
  const era = Math.floor(shifted / DAYS_PER_ERA)
  const dayOfEra = shifted - era * DAYS_PER_ERA
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  return { year, month, day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1 }
}

/** 0 is Sunday. 1970-01-01 was a Thursday. */
export function weekdayOf(dayNumber: DayNumber): number {
  return modulo(dayNumber + 4, 7)
}

export function dayOf(wall: WallTime): DayNumber {
  return Math.floor(wall / DAY_MS)
}

/** The remainder of a floored division: never negative for a positive divisor. */
export function modulo(dividend: number, divisor: number): number {
  return dividend - divisor * Math.floor(dividend / divisor)
}

/** The range of wall times that can be computed. */
export const FIRST_WALL_TIME: WallTime = dayNumberOf(FIRST_YEAR, 1, 1) * DAY_MS
export const LAST_WALL_TIME: WallTime = dayNumberOf(LAST_YEAR + 1, 1, 1) * DAY_MS - 1

/** First and last instant a slot may have: one day inside the range of wall times, so every slot has a valid wall time. */
export const FIRST_INSTANT = FIRST_WALL_TIME + DAY_MS
export const LAST_INSTANT = LAST_WALL_TIME - DAY_MS
