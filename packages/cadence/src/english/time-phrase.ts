import { wallTimeOf } from '../slots/moment.ts'
import type { Moment } from '../slots/moment.ts'
import type { Duration } from '../time/duration.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, dateOf, dayOf, modulo } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import type { Zone } from '../time/zone.ts'
import { MONTHS, countOf, joinRanges, joinWords } from './words.ts'

// The most times of day that a phrase lists. A longer list is summarised.
const TIMES_LISTED = 6

/** Times of day in English: `At 09:00 and 17:30`, `Every 15 minutes`, `Every 2 hours from 00:05 to 22:05`. */
export function describeTimes(timesOfDay: readonly number[]): string {
  if (timesOfDay.length === 0) return 'Never'
  const [first = 0, second] = timesOfDay
  const last = timesOfDay.at(-1) ?? first
  const step = second === undefined ? DAY_MS : second - first
  const isRegular = timesOfDay.every((time, index) => time === first + index * step)
  if (isRegular && timesOfDay.length * step === DAY_MS && timesOfDay.length > 1) return describeStep(first, step)
  if (timesOfDay.length <= TIMES_LISTED) return `At ${joinWords(timesOfDay.map(formatTime))}`
  if (isRegular) return `Every ${lengthOf(step)} from ${formatTime(first)} to ${formatTime(last)}`
  return (
    describeMinutes(timesOfDay) ??
    `At ${timesOfDay.length} times a day, from ${formatTime(first)} to ${formatTime(last)}`
  )
}

/** Times of day followed by the days, if the rule names any. */
export function describeTimesOnDays(timesOfDay: readonly number[], days: readonly string[]): string {
  const times = describeTimes(timesOfDay)
  if (days.length > 0) return [times, ...days].join(' ')
  return timesOfDay.length <= TIMES_LISTED && times.startsWith('At ') ? `${times} every day` : times
}

/** Times of day at equal distances around the clock. */
function describeStep(first: number, step: number): string {
  const every = `Every ${lengthOf(step)}`
  if (first === 0) return every
  if (step === HOUR_MS && first % MINUTE_MS === 0) return `${every}, at ${countOf(first / MINUTE_MS, 'minute')} past`
  return `${every} from ${formatTime(first)}`
}

/** Names the minutes if every hour has the same ones; undefined if not. */
function describeMinutes(timesOfDay: readonly number[]): string | undefined {
  const inFirstHour = timesOfDay.filter((time) => time < HOUR_MS)
  const isEveryHour = timesOfDay.length === inFirstHour.length * 24 && inFirstHour.length > 0
  if (!isEveryHour || timesOfDay.some((time) => time % MINUTE_MS !== 0)) return undefined
  return `At ${joinRanges(
    inFirstHour.map((time) => time / MINUTE_MS),
    String,
  )} minutes past every hour`
}

function lengthOf(ms: number): string {
  return describeDuration({ months: 0, days: 0, timeMs: ms })
}

/** `09:00`, or `09:00:30` if there are seconds. */
export function formatTime(timeOfDay: number): string {
  const text = new Date(timeOfDay).toISOString().slice(11, 19)
  return text.endsWith(':00') ? text.slice(0, 5) : text
}

/** A duration as it reads after "every": `minute`, `15 minutes`, `1 day and 12 hours`. */
export function describeDuration({ months, days, timeMs }: Duration): string {
  const isWeeks = days > 0 && days % 7 === 0
  const amounts: readonly [number, string][] = [
    [Math.floor(months / 12), 'year'],
    [months % 12, 'month'],
    [isWeeks ? days / 7 : 0, 'week'],
    [isWeeks ? 0 : days, 'day'],
    [Math.floor(timeMs / HOUR_MS), 'hour'],
    [Math.floor((timeMs % HOUR_MS) / MINUTE_MS), 'minute'],
    [(timeMs % MINUTE_MS) / SECOND_MS, 'second'],
  ]
  const present = amounts.filter(([amount]) => amount > 0)
  const [only] = present
  if (only !== undefined && present.length === 1 && only[0] === 1) return only[1]
  return joinWords(present.map(([amount, unit]) => countOf(amount, unit)))
}

/** `24 December 2026`. */
export function describeDate(wall: WallTime): string {
  const { year, month, day } = dateOf(dayOf(wall))
  return `${day} ${MONTHS[month - 1]} ${year}`
}

/** `24 December 2026 at 18:00`, in local time of the zone. */
export function describeMoment(moment: Moment, zone: Zone): string {
  const wall = wallTimeOf(moment, zone)
  return `${describeDate(wall)} at ${formatTime(modulo(wall, DAY_MS))}`
}
