import { DaySet, allDays } from '../rules/day-set.ts'
import type { Month } from '../rules/day-set.ts'
import { MINUTE_MS, modulo, weekdayOf } from '../time/wall-time.ts'
import type { CronExpression } from './cron-expression.ts'

/** The times of day of an expression, in milliseconds since midnight, ascending. */
export function cronTimesOfDay({ hour, minute }: CronExpression): number[] {
  return hour.values.flatMap((hours) => minute.values.map((minutes) => (hours * 60 + minutes) * MINUTE_MS))
}

/** The days that match the fields day of month, month and day of week. */
export function cronDays({ month: months, dayOfMonth, dayOfWeek }: CronExpression): DaySet {
  const monthBits = bitSet(months.values)
  const dateBits = bitSet(dayOfMonth.values)
  const weekdayBits = bitSet(dayOfWeek.values)
  // Vixie cron: if both day fields are restricted, a day matches either. A field that begins with `*` is unrestricted here.
  const isEither = !dayOfMonth.isStar && !dayOfWeek.isStar

  const byDate = (month: Month): number => (dateBits & allDays(month)) | (dayOfMonth.hasLastDay ? 1 << month.length : 0)

  const byWeekday = ({ first, length }: Month): number => {
    const firstWeekday = weekdayOf(first)
    let days = 0
    for (let day = 1; day <= length; day += 1) {
      if ((weekdayBits & (1 << ((firstWeekday + day - 1) % 7))) !== 0) days |= 1 << day
    }
    for (const { weekday, nth } of dayOfWeek.nthWeekdays) {
      const day = 1 + modulo(weekday - firstWeekday, 7) + (nth - 1) * 7
      if (day <= length) days |= 1 << day
    }
    for (const weekday of dayOfWeek.lastWeekdays) {
      days |= 1 << (length - modulo(weekdayOf(first + length - 1) - weekday, 7))
    }
    return days
  }

  return new DaySet((month) => {
    if ((monthBits & (1 << month.month)) === 0) return 0
    return isEither ? byDate(month) | byWeekday(month) : byDate(month) & byWeekday(month)
  })
}

function bitSet(values: readonly number[]): number {
  return values.reduce((bits, value) => bits | (1 << value), 0)
}
