import { MAX_RUNS } from './bounds-input.ts'
import { SLOTS_MAX } from './cadence.ts'
import { MINIMUM_SECONDS_DEFAULT } from './parse.ts'
import { DATES_MAX } from './rrule/exceptions-input.ts'

/** The limits that a wire contract repeats. */
export const LIMITS = {
  minimumSeconds: MINIMUM_SECONDS_DEFAULT,
  maxRuns: MAX_RUNS,
  exceptionDates: DATES_MAX,
  slotsPerCall: SLOTS_MAX,
} as const
