import { runsOf } from '../sorted-list.ts'
import type { CronExpression, CronField, CronFieldShape } from './cron-fields.ts'
import { DAY_OF_MONTH_FIELD, DAY_OF_WEEK_FIELD, HOUR_FIELD, MINUTE_FIELD, MONTH_FIELD } from './cron-fields.ts'

/** The canonical text of an expression: numbers for names, ranges for runs, one spelling for one meaning. */
export function formatCron({ minute, hour, dayOfMonth, month, dayOfWeek }: CronExpression): string {
  return [
    formatValues(minute, MINUTE_FIELD, true),
    formatValues(hour, HOUR_FIELD, true),
    // A star matters in the day fields (it lets the other one decide), so it is never taken away or given.
    formatValues(dayOfMonth, DAY_OF_MONTH_FIELD, dayOfMonth.isStar),
    formatValues(month, MONTH_FIELD, true),
    formatValues(dayOfWeek, DAY_OF_WEEK_FIELD, dayOfWeek.isStar),
  ].join(' ')
}

function formatValues(field: CronField, { min, max }: CronFieldShape, mayStar: boolean): string {
  const { values, hasLastDay, lastWeekdays, nthWeekdays } = field
  const last = max === DAY_OF_WEEK_FIELD.max ? 6 : max
  const isPlain = !hasLastDay && lastWeekdays.length === 0 && nthWeekdays.length === 0
  const step = mayStar && isPlain ? stepOf(values, min, last) : undefined
  if (step !== undefined) return step === 1 ? '*' : `*/${step}`
  // `*/2,L` begins with a star and is no plain step.
  if (field.isStar) return field.text
  return [
    ...runsOf(values).map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)),
    ...(hasLastDay ? ['L'] : []),
    ...lastWeekdays.map((weekday) => `${weekday}L`),
    ...nthWeekdays.map(({ weekday, nth }) => `${weekday}#${nth}`),
  ].join(',')
}

/** The step that gives exactly these values from the lowest on, if there is one. */
function stepOf(values: readonly number[], min: number, max: number): number | undefined {
  if (values[0] !== min || values.length < 2) return undefined
  const step = (values[1] ?? min) - min
  const count = Math.floor((max - min) / step) + 1
  return values.length === count && values.every((value, index) => value === min + index * step) ? step : undefined
}
