import { cronTimesOfDay } from '../cron/cron-days.ts'
import type { CronExpression, CronField } from '../cron/cron-expression.ts'
import { describeTimesOnDays } from './time-phrase.ts'
import { MONTHS, joinRanges, joinWords, ordinal, weekdayName } from './words.ts'

/** A cron expression in English. Derived from its meaning, so equivalent expressions read the same. */
export function describeCron(expression: CronExpression): string {
  const days = [describeDays(expression), describeMonths(expression.month)].filter((phrase) => phrase !== '')
  return describeTimesOnDays(cronTimesOfDay(expression), days)
}

function describeDays({ dayOfMonth, dayOfWeek }: CronExpression): string {
  const isEither = !dayOfMonth.isStar && !dayOfWeek.isStar
  const isAnyDate = dayOfMonth.values.length === 31
  const isAnyWeekday = dayOfWeek.values.length === 7
  if (isEither && (isAnyDate || isAnyWeekday)) return ''
  if (isAnyDate) return isAnyWeekday ? '' : `on ${describeWeekdays(dayOfWeek)}`
  const dates = `on ${describeDates(dayOfMonth)} of the month`
  if (isAnyWeekday) return dates
  if (isEither) return `${dates} or on ${describeWeekdays(dayOfWeek)}`
  return `${dates}, if that is ${describeWeekdays(dayOfWeek)}`
}

function describeDates({ values, hasLastDay }: CronField): string {
  const dates = values.length > 0 ? [`the ${joinRanges(values, ordinal)}`] : []
  return joinWords([...dates, ...(hasLastDay ? ['the last day'] : [])])
}

function describeWeekdays({ values, lastWeekdays, nthWeekdays }: CronField): string {
  // Counted from Monday, so Saturday and Sunday are neighbours.
  const fromMonday = values.map((weekday) => (weekday === 0 ? 7 : weekday)).toSorted((a, b) => a - b)
  return joinWords([
    ...(values.length > 0 ? [joinRanges(fromMonday, weekdayName)] : []),
    ...nthWeekdays.map(({ weekday, nth }) => `the ${ordinal(nth)} ${weekdayName(weekday)} of the month`),
    ...lastWeekdays.map((weekday) => `the last ${weekdayName(weekday)} of the month`),
  ])
}

function describeMonths({ values }: CronField): string {
  return values.length === 12 ? '' : `in ${joinRanges(values, (month) => MONTHS[month - 1] ?? '')}`
}
