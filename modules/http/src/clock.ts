/**
 * The wall clock, in epoch milliseconds: for the date in a Retry-After and the timestamp of a signature. Postgres' clock, not this
 * one, decides when a run is due (I10).
 */
export function systemNow(): number {
  return Date.now()
}
