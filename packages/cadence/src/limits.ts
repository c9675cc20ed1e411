/** Limits that a wire contract repeats. */
export const LIMITS = {
  /** Least distance between two slots, unless the caller of `parse` sets `minimumSeconds`. */
  minimumSeconds: 60,
  /** Largest `maxRuns` of a cadence whose slots are counted one by one. */
  maxRuns: 10_000,
  /** Largest `maxRuns` of an interval of hours, minutes or seconds, whose slots are counted by arithmetic. */
  intervalMaxRuns: 1_000_000_000,
  /** Most `exdates` of a rule, and most `rdates`. */
  exceptionDates: 1000,
  /** Most slots that one call of `slots` returns. */
  slotsPerCall: 10_000,
} as const
