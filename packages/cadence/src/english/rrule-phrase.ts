import type { ExceptionDates } from '../rrule/exceptions-input.ts'
import { timesOfDayOf } from '../rrule/rrule-days.ts'
import { isDayBased } from '../rrule/rrule-parts.ts'
import type { ByDay, RRuleFrequency, RRuleParts } from '../rrule/rrule-parts.ts'
import { TimeBasedRule } from '../rrule/time-based-rule.ts'
import { ascending } from '../rules/sorted-list.ts'
import { DAY_MS, dateOf, dayOf, modulo, weekdayOf } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { describeDate, describeTimes, describeTimesOnDays, formatTime } from './time-phrase.ts'
import { MONTHS, WEEKDAYS, countOf, joinRanges, joinWords, ordinal, rangeNames, weekdayName } from './words.ts'

const UNITS: Readonly<Record<RRuleFrequency, string>> = {
  SECONDLY: 'second',
  MINUTELY: 'minute',
  HOURLY: 'hour',
  DAILY: 'day',
  WEEKLY: 'week',
  MONTHLY: 'month',
  YEARLY: 'year',
}

/** An RRULE in English: `Every 2 weeks on Monday and Friday at 09:00, 10 times`. */
export function describeRRule(parts: RRuleParts, start: WallTime, exceptions: ExceptionDates): string {
  const rule = isDayBased(parts.freq) ? describeDayBased(parts, start) : describeTimeBased(parts, start)
  // For shorter periods the times of day already reflect BYSETPOS.
  const positions = isDayBased(parts.freq) ? setPositionPhrase(parts) : []
  return [rule, ...positions, ...endPhrase(parts), ...exceptionPhrase(exceptions)].join(', ')
}

function describeDayBased(parts: RRuleParts, start: WallTime): string {
  const times = describeTimes(timesOfDayOf(parts, start))
  return [everyPeriod(parts), ...daysOf(parts, start), times.charAt(0).toLowerCase() + times.slice(1)].join(' ')
}

/** A rule of hours, minutes or seconds reads as times of day, if those are the same every day. */
function describeTimeBased(parts: RRuleParts, start: WallTime): string {
  const timesOfDay = new TimeBasedRule(parts, start).timesOfDay()
  if (timesOfDay !== null) return describeTimesOnDays(timesOfDay, daysOf(parts, start))
  const limits = [
    ...(parts.byHour.length > 0 ? [`in the hours ${joinRanges(parts.byHour, String)}`] : []),
    ...(parts.byMinute.length > 0 ? [`at the minutes ${joinRanges(parts.byMinute, String)}`] : []),
    ...(parts.bySecond.length > 0 ? [`at the seconds ${joinRanges(parts.bySecond, String)}`] : []),
  ]
  const origin = `counted from ${describeDate(start)} at ${formatTime(modulo(start, DAY_MS))}`
  return [everyPeriod(parts), ...daysOf(parts, start), ...limits, ...(parts.interval > 1 ? [origin] : [])].join(' ')
}

function everyPeriod({ freq, interval }: RRuleParts): string {
  return interval === 1 ? `Every ${UNITS[freq]}` : `Every ${countOf(interval, UNITS[freq])}`
}

function daysOf(parts: RRuleParts, start: WallTime): string[] {
  const { byMonth, byWeekNo, byYearDay, byMonthDay, byDay } = parts
  const days = [
    ...(byDay.length > 0 ? [`on ${weekdaysPhrase(parts)}`] : []),
    ...(byMonthDay.length > 0 ? [`on the ${ordinals(byMonthDay)} day of the month`] : []),
    ...(byYearDay.length > 0 ? [`on the ${ordinals(byYearDay)} day of the year`] : []),
  ]
  return [
    // A day must satisfy all limits at once.
    ...(days.length > 0 ? [days.join(' that is also ')] : dayOfStart(parts, start)),
    ...(byWeekNo.length > 0 ? [`in the ${ordinals(byWeekNo)} week of the year`] : []),
    ...(byMonth.length > 0 ? [`in ${joinRanges(byMonth, (month) => MONTHS[month - 1] ?? '')}`] : []),
  ]
}

/** The day that the rule takes from its start because it names none. */
function dayOfStart({ freq, byMonth, byWeekNo }: RRuleParts, start: WallTime): string[] {
  const { month, day } = dateOf(dayOf(start))
  if (freq === 'WEEKLY' || byWeekNo.length > 0) return [`on ${WEEKDAYS[weekdayOf(dayOf(start))]}`]
  if (freq === 'MONTHLY') return [`on the ${ordinal(day)} day of the month`]
  if (freq !== 'YEARLY') return []
  return byMonth.length > 0 ? [`on the ${ordinal(day)}`] : [`on ${day} ${MONTHS[month - 1]}`]
}

function weekdaysPhrase({ byDay, byMonth, freq }: RRuleParts): string {
  // Counted from Monday, so Saturday and Sunday are neighbours.
  const plain = ascending(byDay.filter((day) => day.ordinal === null).map(({ weekday }) => weekday || 7))
  const isLong = freq === 'MONTHLY' || freq === 'YEARLY'
  const span = freq === 'YEARLY' && byMonth.length === 0 ? 'year' : 'month'
  return joinWords([
    ...(plain.length > 0 ? [`${isLong ? 'every ' : ''}${joinRanges(plain, weekdayName)}`] : []),
    ...byDay
      .toSorted((a, b) => rank(a) - rank(b))
      .flatMap((day) =>
        day.ordinal === null ? [] : [`the ${ordinal(day.ordinal)} ${weekdayName(day.weekday)} of the ${span}`],
      ),
  ])
}

/** Sort key: ordinals counted from the end come after those counted from the start. */
function rank({ ordinal: nth }: ByDay): number {
  return nth !== null && nth < 0 ? 100 - nth : (nth ?? 0)
}

function ordinals(numbers: readonly number[]): string {
  const forward = numbers.filter((number) => number > 0)
  const backward = numbers.filter((number) => number < 0).toReversed()
  return joinWords([...rangeNames(forward, ordinal), ...backward.map(ordinal)])
}

function setPositionPhrase({ bySetPos, freq }: RRuleParts): string[] {
  return bySetPos.length === 0 ? [] : [`only the ${ordinals(bySetPos)} of each ${UNITS[freq]}`]
}

function endPhrase({ count, until }: RRuleParts): string[] {
  if (count !== null) return [count === 1 ? 'once' : `${count} times`]
  if (until === null) return []
  const time = modulo(until.at, DAY_MS)
  const isWholeDay = time === DAY_MS - 1
  return [
    `until ${describeDate(until.at)}${isWholeDay ? '' : ` at ${formatTime(time)}${until.kind === 'instant' ? ' UTC' : ''}`}`,
  ]
}

function exceptionPhrase({
  removedDays,
  removedWallTimes,
  removedInstants,
  addedWallTimes,
  addedInstants,
}: ExceptionDates): string[] {
  const removed = removedDays.size + removedWallTimes.size + removedInstants.size
  const added = addedWallTimes.length + addedInstants.length
  return [
    ...(added > 0 ? [`and on ${countOf(added, 'more date')}`] : []),
    ...(removed > 0 ? [`except on ${countOf(removed, 'date')}`] : []),
  ]
}
