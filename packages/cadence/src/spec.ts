import type { DstSpec } from './time/dst-policy.ts'

interface ZonedSpec {
  /** Canonical IANA name. */
  readonly timezone: string
  readonly dst?: DstSpec
}

interface RecurringSpec extends ZonedSpec {
  /** The earliest time that may be a slot: an instant (`…Z`) or a local time in `timezone`. */
  readonly startAt?: string
  /** The latest time that may be a slot: an instant (`…Z`) or a local time in `timezone`. */
  readonly endAt?: string
  /** Largest number of slots, counted from `startAt`. */
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
  /** The DTSTART of iCalendar, as a local time in `timezone`. */
  readonly start: string
  readonly exdates?: readonly string[]
  readonly rdates?: readonly string[]
}

export interface IntervalSpec extends RecurringSpec {
  readonly kind: 'interval'
  /** ISO 8601 duration. */
  readonly every: string
  /** Slot n lies n × `every` after this time: an instant (`…Z`) or a local time in `timezone`. @default `startAt` */
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
  /** The local date of one slot, from which every second week is counted. Only a biweekly cadence has an anchor. */
  readonly anchor?: string
}

/** The canonical form of a cadence: plain JSON with every default and anchor filled in. */
export type CadenceSpec = OnceSpec | CronSpec | RRuleSpec | IntervalSpec | FrequencySpec

export type CadenceKind = CadenceSpec['kind']

export const CADENCE_KINDS: readonly CadenceKind[] = ['once', 'cron', 'rrule', 'interval', 'frequency']

/** Makes the fields `Filled` optional, because `parse` fills them in. */
type WithOptional<Spec, Filled extends keyof Spec> = Omit<Spec, Filled> & Partial<Pick<Spec, Filled>>

/** What `parse` accepts: a spec that may omit defaults and anchors. Use it to type-check literals. */
export type CadenceInput =
  | WithOptional<OnceSpec, 'timezone'>
  | WithOptional<CronSpec, 'timezone'>
  | WithOptional<RRuleSpec, 'start' | 'timezone'>
  | (Omit<WithOptional<IntervalSpec, 'timezone'>, 'every'> & { readonly every: number | string })
  | WithOptional<FrequencySpec, 'timezone'>
