import type { FoldPolicy, GapPolicy } from './dst-policy.ts'

/** What changes of the clocks do; each half that is absent follows the default. */
export interface DstSpec {
  readonly gap?: GapPolicy
  readonly fold?: FoldPolicy
}

interface ZonedSpec {
  /** IANA name, canonical. */
  readonly timezone: string
  readonly dst?: DstSpec
}

interface RecurringSpec extends ZonedSpec {
  /** No slot before. An instant (`…Z`) or a local time in `timezone`. */
  readonly startAt?: string
  /** No slot after. */
  readonly endAt?: string
  /** At most so many slots, counted from `startAt`. */
  readonly maxRuns?: number
}

export interface OnceSpec extends ZonedSpec {
  readonly kind: 'once'
  readonly at: string
}

export interface CronSpec extends RecurringSpec {
  readonly kind: 'cron'
  readonly expression: string
}

export interface RRuleSpec extends RecurringSpec {
  readonly kind: 'rrule'
  readonly rule: string
  /** DTSTART in local time. */
  readonly start: string
  readonly exdates?: readonly string[]
  readonly rdates?: readonly string[]
}

export interface IntervalSpec extends RecurringSpec {
  readonly kind: 'interval'
  /** ISO 8601 duration. */
  readonly every: string
  /** Slots lie at whole multiples of `every` from here, or from `startAt` where there is no anchor. */
  readonly anchor?: string
}

export const FREQUENCIES = ['weekly', 'biweekly', 'monthly'] as const

export type Frequency = (typeof FREQUENCIES)[number]

export interface FrequencySpec extends RecurringSpec {
  readonly kind: 'frequency'
  readonly frequency: Frequency
  /** 0 is Sunday. */
  readonly dayOfWeek: number
  /** `HH:MM`. */
  readonly timeOfDay: string
  /** Local date of one of the slots; only where the frequency needs one. */
  readonly anchor?: string
}

/** The canonical form of a cadence: plain JSON, every default and anchor filled in. */
export type CadenceSpec = OnceSpec | CronSpec | RRuleSpec | IntervalSpec | FrequencySpec

export type CadenceKind = CadenceSpec['kind']

export const CADENCE_KINDS: readonly CadenceKind[] = ['once', 'cron', 'rrule', 'interval', 'frequency']
