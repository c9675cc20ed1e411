/** The five fields of a cron expression, in order. */
export interface CronFieldShape {
  readonly name: string
  readonly min: number
  readonly max: number
  /** Names for values, from `min` on. */
  readonly names: readonly string[]
}

const MONTH_NAMES = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

export const MINUTE_FIELD: CronFieldShape = { name: 'minute', min: 0, max: 59, names: [] }
export const HOUR_FIELD: CronFieldShape = { name: 'hour', min: 0, max: 23, names: [] }
export const DAY_OF_MONTH_FIELD: CronFieldShape = { name: 'day of month', min: 1, max: 31, names: [] }
export const MONTH_FIELD: CronFieldShape = { name: 'month', min: 1, max: 12, names: MONTH_NAMES }
// 7 is Sunday again, as in Vixie cron.
export const DAY_OF_WEEK_FIELD: CronFieldShape = { name: 'day of week', min: 0, max: 7, names: WEEKDAY_NAMES }

/** What one field of an expression says. */
export interface CronField {
  /** As it was written, in upper case. */
  readonly text: string
  /** Plain values, sorted, without repeats. */
  readonly values: readonly number[]
  /** Begins with `*`: no restriction when day of month meets day of week. */
  readonly isStar: boolean
  /** Day of month `L`. */
  readonly hasLastDay: boolean
  /** Day of week `5L`: the last Friday. */
  readonly lastWeekdays: readonly number[]
  /** Day of week `MON#2`: the second Monday. */
  readonly nthWeekdays: readonly { readonly weekday: number; readonly nth: number }[]
}

/** A cron expression, read. */
export interface CronExpression {
  readonly minute: CronField
  readonly hour: CronField
  readonly dayOfMonth: CronField
  readonly month: CronField
  readonly dayOfWeek: CronField
}
