import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './wall-time.ts'

/** A duration in three parts: months vary in length, days are local days of 23 to 25 hours, `timeMs` is elapsed time. */
export interface Duration {
  readonly months: number
  readonly days: number
  readonly timeMs: number
}

const PATTERN =
  /^P(?:(\d{1,15})Y)?(?:(\d{1,15})M)?(?:(\d{1,15})W)?(?:(\d{1,15})D)?(?:T(?=\d)(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15})(?:\.(\d{1,3}))?S)?)?$/i

/** Parses an ISO 8601 duration. Undefined for a sign, for a fraction of anything but seconds, and for any other text. */
export function parseDuration(text: string): Duration | undefined {
  const match = PATTERN.exec(text)
  if (match === null || text.length < 3) return undefined
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match
    .slice(1, 8)
    .map((part) => Number(part ?? 0))
  const milliseconds = Number((match[8] ?? '').padEnd(3, '0'))
  return {
    months: years * 12 + months,
    days: weeks * 7 + days,
    timeMs: hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS + milliseconds,
  }
}

/** True for hours, minutes and seconds only. A duration with days or longer units is added in local time instead. */
export function isElapsed({ months, days }: Duration): boolean {
  return months === 0 && days === 0
}

/** The shortest length the duration can have in wall time: every month counts 28 days. */
export function shortestMs({ months, days, timeMs }: Duration): number {
  return (months * 28 + days) * DAY_MS + timeMs
}

/** The canonical text: `P1Y2M`, `PT1H30M`. */
export function formatDuration({ months, days, timeMs }: Duration): string {
  const years = Math.floor(months / 12)
  const weeks = months === 0 && timeMs === 0 && days % 7 === 0 ? days / 7 : 0
  const date = part(years, 'Y') + part(months % 12, 'M') + part(weeks, 'W') + part(weeks > 0 ? 0 : days, 'D')
  const hours = Math.floor(timeMs / HOUR_MS)
  const minutes = Math.floor((timeMs % HOUR_MS) / MINUTE_MS)
  const time = part(hours, 'H') + part(minutes, 'M') + part((timeMs % MINUTE_MS) / SECOND_MS, 'S')
  return `P${date}${time === '' ? '' : `T${time}`}`
}

function part(amount: number, unit: string): string {
  return amount === 0 ? '' : `${amount}${unit}`
}
