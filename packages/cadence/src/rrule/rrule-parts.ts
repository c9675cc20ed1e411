import type { Moment } from '../moment.ts'

/** How often an RRULE's period comes, coarsest last. */
export type Frequency = 'SECONDLY' | 'MINUTELY' | 'HOURLY' | 'DAILY' | 'WEEKLY' | 'MONTHLY' | 'YEARLY'

/** `MO`, or with an ordinal `2MO`, `-1FR`. */
export interface ByDay {
  /** 0 is Sunday. */
  readonly weekday: number
  /** Null for every such weekday. */
  readonly ordinal: number | null
}

/** An RRULE, read; an absent BY part is an empty list. Numbers are as in RFC 5545, negatives included. */
export interface RRuleParts {
  readonly freq: Frequency
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

export const FREQUENCIES: readonly Frequency[] = [
  'SECONDLY',
  'MINUTELY',
  'HOURLY',
  'DAILY',
  'WEEKLY',
  'MONTHLY',
  'YEARLY',
]

export const WEEKDAY_CODES = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const

/** Whether a period is a day or longer. */
export function isDayBased(freq: Frequency): boolean {
  return FREQUENCIES.indexOf(freq) >= FREQUENCIES.indexOf('DAILY')
}
