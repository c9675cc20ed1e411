import { DAY, HOUR, MINUTE, SECOND } from './zone.ts'

export interface Duration {
  readonly years: number
  readonly months: number
  readonly weeks: number
  readonly days: number
  readonly hours: number
  readonly minutes: number
  readonly seconds: number
}

export const NOTHING: Duration = { years: 0, months: 0, weeks: 0, days: 0, hours: 0, minutes: 0, seconds: 0 }

/** ISO 8601, as in `P1Y2M3W4DT5H6M7S`. */
export function printDuration({ years, months, weeks, days, hours, minutes, seconds }: Duration): string {
  const print = (values: [number, string][]) =>
    values.map(([value, unit]) => (value === 0 ? '' : `${value}${unit}`)).join('')
  const date = print([
    [years, 'Y'],
    [months, 'M'],
    [weeks, 'W'],
    [days, 'D'],
  ])
  const time = print([
    [hours, 'H'],
    [minutes, 'M'],
    [seconds, 'S'],
  ])
  return `P${date}${time === '' ? '' : `T${time}`}`
}

/** The wall time `times` durations after `start`. Months are added first, clamped to the end of the month, then days, then time. */
export function addTimes(start: number, duration: Duration, times: number): number {
  const date = new Date(start)
  const month = date.getUTCMonth() + times * (12 * duration.years + duration.months)
  let day = date.getUTCDate()
  while (new Date(Date.UTC(date.getUTCFullYear(), month, day)).getUTCMonth() !== ((month % 12) + 12) % 12) day -= 1
  const clamped = Date.UTC(date.getUTCFullYear(), month, day) + (start - Math.floor(start / DAY) * DAY)
  return clamped + times * ((7 * duration.weeks + duration.days) * DAY + timeOf(duration))
}

export function timeOf({ hours, minutes, seconds }: Duration): number {
  return hours * HOUR + minutes * MINUTE + seconds * SECOND
}
