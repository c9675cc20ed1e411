import { DAY_MS, HOUR_MS, MINUTE_MS } from '../wall.ts'
import { describeDuration } from './duration-phrase.ts'
import { countOf, joinRuns, joinWords } from './words.ts'

// More than this and a list says less than its length.
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

/** Times of day and the days they are on, if any are named. */
export function describeTimesOnDays(timesOfDay: readonly number[], days: readonly string[]): string {
  const times = describeTimes(timesOfDay)
  if (days.length > 0) return [times, ...days].join(' ')
  return timesOfDay.length <= TIMES_LISTED && times.startsWith('At ') ? `${times} every day` : times
}

/** All day long at one distance. */
function describeStep(first: number, step: number): string {
  const every = `Every ${lengthOf(step)}`
  if (first === 0) return every
  if (step === HOUR_MS && first % MINUTE_MS === 0) return `${every}, at ${countOf(first / MINUTE_MS, 'minute')} past`
  return `${every} from ${formatTime(first)}`
}

/** The same few minutes of every hour. */
function describeMinutes(timesOfDay: readonly number[]): string | undefined {
  const inFirstHour = timesOfDay.filter((time) => time < HOUR_MS)
  const isEveryHour = timesOfDay.length === inFirstHour.length * 24 && inFirstHour.length > 0
  if (!isEveryHour || timesOfDay.some((time) => time % MINUTE_MS !== 0)) return undefined
  return `At ${joinRuns(
    inFirstHour.map((time) => time / MINUTE_MS),
    String,
  )} minutes past every hour`
}

function lengthOf(ms: number): string {
  return describeDuration({ months: 0, days: 0, timeMs: ms })
}

/** `09:00`, or `09:00:30` where there are seconds. */
export function formatTime(timeOfDay: number): string {
  const text = new Date(timeOfDay).toISOString().slice(11, 19)
  return text.endsWith(':00') ? text.slice(0, 5) : text
}
