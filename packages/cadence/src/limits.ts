/** The limits of `parse` and `slots` that the API contract states too. */
export const CADENCE_LIMITS = {
  /** The least distance between two slots. The caller of `parse` may set another; `parse` rejects closer slots. */
  minimumSeconds: 60,
  /** The largest `maxRuns` of a cadence whose slots `parse` counts one by one. */
  maxRuns: 10_000,
  /** The largest `maxRuns` of an interval of hours, minutes or seconds, whose last slot `parse` calculates without counting. */
  intervalMaxRuns: 1_000_000_000,
  /** The most `exdates` that a rule may have, and the most `rdates`; `parse` rejects more. */
  exceptionDates: 1000,
  /** The most problems that `parse` lists; it drops further ones. So the answer to a hostile input is short. */
  problems: 50,
  /** The most slots that one call of `slots` returns, even if its `limit` is larger. */
  slotsPerCall: 10_000,
} as const
