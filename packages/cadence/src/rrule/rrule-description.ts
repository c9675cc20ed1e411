import { formatWall } from '../moment-text.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, dayOf, modulo, weekdayOf, dateOf } from '../wall.ts'
import type { Wall } from '../wall.ts'
import { WEEKDAYS } from '../weekday-names.ts'
import { joinWords } from '../word-list.ts'
import type { ByDay, Frequency, RRuleParts } from './rrule-parts.ts'
import { isDayBased } from './rrule-parts.ts'

const UNITS: Readonly<Record<Frequency, string>> = {
  SECONDLY: 'second',
  MINUTELY: 'minute',
  HOURLY: 'hour',
  DAILY: 'day',
  WEEKLY: 'week',
  MONTHLY: 'month',
  YEARLY: 'year',
}

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const

// More than this and a list says less than its length.
const TIMES_SHOWN = 6

/** An RRULE in plain English: `Every 2 weeks on Monday and Friday at 09:00`. */
export function describeRRule(parts: RRuleParts, start: Wall): string {
  const unit = UNITS[parts.freq]
  const every = parts.interval === 1 ? `Every ${unit}` : `Every ${parts.interval} ${unit}s`
  const pieces = [
    every,
    ...daysPhrase(parts, start),
    ...timesPhrase(parts, start),
    ...positionPhrase(parts, unit),
    ...endPhrase(parts),
  ]
  return pieces.join(' ')
}

function daysPhrase(parts: RRuleParts, start: Wall): string[] {
  const { byMonth, byWeekNo, byYearDay, byMonthDay, byDay } = parts
  const days = [
    ...(byDay.length > 0 ? [`on ${joinWords(byDay.map(dayName))}`] : []),
    ...(byMonthDay.length > 0 ? [`on ${nth(byMonthDay, 'day')} of the month`] : []),
    ...(byYearDay.length > 0 ? [`on ${nth(byYearDay, 'day')} of the year`] : []),
  ]
  return [
    ...(days.length > 0 ? days : startDayPhrase(parts, start)),
    ...(byWeekNo.length > 0 ? [`in ${nth(byWeekNo, 'week')} of the year`] : []),
    ...(byMonth.length > 0 ? [`in ${joinWords(byMonth.map((month) => MONTHS[month - 1] ?? ''))}`] : []),
  ]
}

/** What the rule leaves open, its start says. */
function startDayPhrase({ freq, byMonth, byWeekNo }: RRuleParts, start: Wall): string[] {
  const { month, day } = dateOf(dayOf(start))
  if (freq === 'WEEKLY' || byWeekNo.length > 0) return [`on ${WEEKDAYS[weekdayOf(dayOf(start))]}`]
  if (freq === 'MONTHLY') return [`on the ${ordinal(day)} day of the month`]
  if (freq !== 'YEARLY') return []
  return byMonth.length > 0 ? [`on the ${ordinal(day)} day`] : [`on ${day} ${MONTHS[month - 1]}`]
}

function timesPhrase(parts: RRuleParts, start: Wall): string[] {
  const { byHour, byMinute, bySecond } = parts
  if (!isDayBased(parts.freq)) {
    return [
      ...(byHour.length > 0 ? [`in the hours ${joinWords(byHour.map(String))}`] : []),
      ...(byMinute.length > 0 ? [`at the minutes ${joinWords(byMinute.map(String))}`] : []),
      ...(bySecond.length > 0 ? [`at the seconds ${joinWords(bySecond.map(String))}`] : []),
    ]
  }
  const hours = byHour.length > 0 ? byHour : [Math.floor(modulo(start, DAY_MS) / HOUR_MS)]
  const minutes = byMinute.length > 0 ? byMinute : [Math.floor(modulo(start, HOUR_MS) / MINUTE_MS)]
  const seconds = bySecond.length > 0 ? bySecond : [Math.floor(modulo(start, MINUTE_MS) / SECOND_MS)]
  const count = hours.length * minutes.length * seconds.length
  if (count > TIMES_SHOWN) return [`at ${count} times a day`]
  const times = hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => clock(hour, minute, second))),
  )
  return [`at ${joinWords(times)}`]
}

function clock(hour: number, minute: number, second: number): string {
  const text = formatWall(hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS).slice(11)
  return second === 0 ? text.slice(0, 5) : text
}

function positionPhrase({ bySetPos }: RRuleParts, unit: string): string[] {
  return bySetPos.length === 0
    ? []
    : [`(only ${joinWords(bySetPos.map((position) => `the ${ordinal(position)}`))} of each ${unit})`]
}

function endPhrase({ count, until }: RRuleParts): string[] {
  if (count !== null) return count === 1 ? ['once'] : [`${count} times`]
  if (until === null) return []
  return [`until ${formatWall(until.at).replace(/T23:59:59\.999$/, '')}${until.kind === 'instant' ? 'Z' : ''}`]
}

/** `the first day and the 15th day`. */
function nth(numbers: readonly number[], unit: string): string {
  return joinWords(numbers.map((number) => `the ${ordinal(number)} ${unit}`))
}

function dayName({ weekday, ordinal: nth }: ByDay): string {
  const name = WEEKDAYS[weekday] ?? ''
  return nth === null ? name : `the ${ordinal(nth)} ${name}`
}

/** `first`, `2nd`, `last`, `3rd to last`. */
function ordinal(number: number): string {
  if (number === -1) return 'last'
  const size = Math.abs(number)
  const tail = size % 100 >= 11 && size % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][size % 10] ?? 'th')
  const text = size === 1 ? 'first' : `${size}${tail}`
  return number < 0 ? `${text} to last` : text
}
