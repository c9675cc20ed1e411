import { runsOf } from '../sorted-list.ts'
import type { CronExpression, CronField, CronFieldShape } from './cron-fields.ts'
import { DAY_OF_MONTH_FIELD, DAY_OF_WEEK_FIELD, HOUR_FIELD, MINUTE_FIELD, MONTH_FIELD } from './cron-fields.ts'

/** The canonical text of an expression: numbers for names, ranges for runs, one spelling for one meaning. */
export function formatCron({ minute, hour, dayOfMonth, month, dayOfWeek }: CronExpression): string {
  return [
    formatTimes(minute, MINUTE_FIELD),
    formatTimes(hour, HOUR_FIELD),
    // A star matters in the day fields (it lets the other one decide), so it is never taken away or given.
    formatDays(dayOfMonth, DAY_OF_MONTH_FIELD),
    formatTimes(month, MONTH_FIELD),
    formatDays(dayOfWeek, DAY_OF_WEEK_FIELD),
  ].join(' ')
}

function formatTimes({ values }: CronField, { min, max }: CronFieldShape): string {
  const step = stepOf(values, min, max)
  if (step === 1) return '*'
  // `*/23` for 0 and 23 would be right, and nobody would read it so.
  const isSteady = step !== undefined && (values.length >= 3 || (max - min + 1) % step === 0)
  return isSteady ? `*/${step}` : formatList(values).join(',')
}

function formatDays(field: CronField, { min, max }: CronFieldShape): string {
  const { values, hasLastDay, lastWeekdays, nthWeekdays, isStar, text } = field
  const others = [
    ...(hasLastDay ? ['L'] : []),
    ...lastWeekdays.map((weekday) => `${weekday}L`),
    ...nthWeekdays.map(({ weekday, nth }) => `${weekday}#${nth}`).toSorted(),
  ]
  if (!isStar) return [...formatList(values), ...others].join(',')
  const step = others.length === 0 ? stepOf(values, min, max === 7 ? 6 : max) : undefined
  // `*/2,L` begins with a star and is no plain step.
  if (step === undefined) return text
  return step === 1 ? '*' : `*/${step}`
}

function formatList(values: readonly number[]): string[] {
  return runsOf(values).map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`))
}

/** The step that gives exactly these values from the lowest on, if there is one. */
function stepOf(values: readonly number[], min: number, max: number): number | undefined {
  if (values[0] !== min || values.length < 2) return undefined
  const step = (values[1] ?? min) - min
  const count = Math.floor((max - min) / step) + 1
  return values.length === count && values.every((value, index) => value === min + index * step) ? step : undefined
}
