import { rangesOf } from '../rules/sorted-list.ts'

/** The values that a field of a cron expression accepts. */
export interface CronFieldShape {
  readonly name: string
  readonly min: number
  readonly max: number
  /** Names of the values, starting at `min`. */
  readonly names: readonly string[]
}

const MONTH_NAMES = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

export const MINUTE_FIELD: CronFieldShape = { name: 'minute', min: 0, max: 59, names: [] }
export const HOUR_FIELD: CronFieldShape = { name: 'hour', min: 0, max: 23, names: [] }
export const DAY_OF_MONTH_FIELD: CronFieldShape = { name: 'day of month', min: 1, max: 31, names: [] }
export const MONTH_FIELD: CronFieldShape = { name: 'month', min: 1, max: 12, names: MONTH_NAMES }
// 0 and 7 are both Sunday, as in Vixie cron.
export const DAY_OF_WEEK_FIELD: CronFieldShape = { name: 'day of week', min: 0, max: 7, names: WEEKDAY_NAMES }

/** One parsed field of an expression. */
export interface CronField {
  /** The field as written, in upper case. */
  readonly text: string
  /** Every value that the numbers, names, ranges and steps of the field yield, ascending, without duplicates. */
  readonly values: readonly number[]
  /** True if the field begins with `*`. A day field that does counts as unrestricted: see `cronDays`. */
  readonly isStar: boolean
  /** True for `L` in day of month: the last day of the month. */
  readonly hasLastDay: boolean
  /** From `5L` in day of week: the last Friday of the month. 0 is Sunday. */
  readonly lastWeekdays: readonly number[]
  /** From `MON#2` in day of week: the second Monday of the month. 0 is Sunday. */
  readonly nthWeekdays: readonly { readonly weekday: number; readonly nth: number }[]
}

/** A parsed cron expression. */
export interface CronExpression {
  readonly minute: CronField
  readonly hour: CronField
  readonly dayOfMonth: CronField
  readonly month: CronField
  readonly dayOfWeek: CronField
}

/** The canonical text of an expression: expressions with the same meaning get the same text. */
export function formatCron({ minute, hour, dayOfMonth, month, dayOfWeek }: CronExpression): string {
  return [
    formatTimes(minute, MINUTE_FIELD),
    formatTimes(hour, HOUR_FIELD),
    // In the day fields a star changes the meaning (see `cronDays`), so it is never added or removed.
    formatDays(dayOfMonth, DAY_OF_MONTH_FIELD),
    formatTimes(month, MONTH_FIELD),
    formatDays(dayOfWeek, DAY_OF_WEEK_FIELD),
  ].join(' ')
}

function formatTimes({ values }: CronField, { min, max }: CronFieldShape): string {
  const step = stepOf(values, min, max)
  if (step === 1) return '*'
  // `*/23` would be correct for 0 and 23, but misleading to read.
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
  // `*/2,L` begins with a star but is not a plain step.
  if (step === undefined) return text
  return step === 1 ? '*' : `*/${step}`
}

function formatList(values: readonly number[]): string[] {
  return rangesOf(values).map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`))
}

/** The step that yields exactly these values from `min` to `max`, if there is one. */
function stepOf(values: readonly number[], min: number, max: number): number | undefined {
  if (values[0] !== min || values.length < 2) return undefined
  const step = (values[1] ?? min) - min
  const count = Math.floor((max - min) / step) + 1
  return values.length === count && values.every((value, index) => value === min + index * step) ? step : undefined
}
