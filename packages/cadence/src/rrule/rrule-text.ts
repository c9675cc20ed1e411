import { formatWall } from '../moment-text.ts'
import type { Moment } from '../moment.ts'
import type { RRuleParts } from './rrule-parts.ts'
import { WEEKDAY_CODES } from './rrule-parts.ts'

/** The canonical text of a rule: parts in one order, lists ascending, nothing that is the default. */
export function formatRRule(parts: RRuleParts): string {
  const byDay = parts.byDay.map(({ ordinal, weekday }) => `${ordinal ?? ''}${WEEKDAY_CODES[weekday]}`)
  return [
    `FREQ=${parts.freq}`,
    ...(parts.interval === 1 ? [] : [`INTERVAL=${parts.interval}`]),
    ...(parts.count === null ? [] : [`COUNT=${parts.count}`]),
    ...(parts.until === null ? [] : [`UNTIL=${formatUntil(parts.until)}`]),
    ...list('BYMONTH', parts.byMonth),
    ...list('BYWEEKNO', parts.byWeekNo),
    ...list('BYYEARDAY', parts.byYearDay),
    ...list('BYMONTHDAY', parts.byMonthDay),
    ...list('BYDAY', byDay),
    ...list('BYHOUR', parts.byHour),
    ...list('BYMINUTE', parts.byMinute),
    ...list('BYSECOND', parts.bySecond),
    ...list('BYSETPOS', parts.bySetPos),
    ...(parts.weekStart === 1 ? [] : [`WKST=${WEEKDAY_CODES[parts.weekStart]}`]),
  ].join(';')
}

function list(name: string, values: readonly (number | string)[]): string[] {
  return values.length === 0 ? [] : [`${name}=${values.join(',')}`]
}

/** The end of a day is the date alone, as it was written. */
function formatUntil({ kind, at }: Moment): string {
  const text = formatWall(at)
    .replace(/T23:59:59\.999$/, '')
    .replaceAll(/[-:]/g, '')
  return kind === 'instant' ? `${text}Z` : text
}
