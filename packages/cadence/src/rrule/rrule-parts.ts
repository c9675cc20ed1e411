import type { Moment } from '../slots/moment.ts'
import { formatWallTime } from '../time/moment-text.ts'

/** The unit of an RRULE's period. */
export type RRuleFrequency = 'SECONDLY' | 'MINUTELY' | 'HOURLY' | 'DAILY' | 'WEEKLY' | 'MONTHLY' | 'YEARLY'

/** `MO`, or with an ordinal `2MO`, `-1FR`. */
export interface ByDay {
  /** 0 is Sunday. */
  readonly weekday: number
  /** Null means every such weekday of the period. */
  readonly ordinal: number | null
}

/**
 * A parsed RRULE. An absent BY part is an empty list, an absent COUNT or UNTIL is null. Negative numbers count from the end,
 * as in RFC 5545.
 */
export interface RRuleParts {
  readonly freq: RRuleFrequency
  readonly interval: number
  readonly count: number | null
  readonly until: Moment | null
  readonly bySecond: readonly number[]
  readonly byMinute: readonly number[]
  readonly byHour: readonly number[]
  readonly byDay: readonly ByDay[]
  readonly byMonthDay: readonly number[]
  readonly byYearDay: readonly number[]
  readonly byWeekNo: readonly number[]
  readonly byMonth: readonly number[]
  readonly bySetPos: readonly number[]
  /** 0 is Sunday. */
  readonly weekStart: number
}

/** Shortest first. */
export const RRULE_FREQUENCIES: readonly RRuleFrequency[] = [
  'SECONDLY',
  'MINUTELY',
  'HOURLY',
  'DAILY',
  'WEEKLY',
  'MONTHLY',
  'YEARLY',
]

export const WEEKDAY_CODES = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const

/** True if a period is a day or longer. */
export function isDayBased(freq: RRuleFrequency): boolean {
  return RRULE_FREQUENCIES.indexOf(freq) >= RRULE_FREQUENCIES.indexOf('DAILY')
}

/** The canonical text of a rule: parts in a fixed order, lists ascending, defaults omitted. */
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

/** Writes the last millisecond of a day as the date alone, which the parser reads back as the whole day. */
function formatUntil({ kind, at }: Moment): string {
  const text = formatWallTime(at)
    .replace(/T23:59:59\.999$/, '')
    .replaceAll(/[-:]/g, '')
  return kind === 'instant' ? `${text}Z` : text
}
