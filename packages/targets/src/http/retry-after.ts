const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850 = /^[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * How long a Retry-After asks to wait: seconds, or one of the three forms of an HTTP date (RFC 9110, 5.6.7). Undefined
 * for anything else, and for a date that has passed. Never more than `maxMs`.
 */
export function retryAfterMs(value: string, now: number, maxMs: number): number | undefined {
  const wait = /^\d+$/.test(value) ? Number(value) * 1000 : httpDate(value) - now
  // The digits may go on for ever, and a number then ends in Infinity.
  return wait >= 0 ? Math.min(wait, maxMs) : undefined
}

/** NaN for what is no date. `Date.parse` alone takes almost anything, and `asctime` for local time. */
function httpDate(value: string): number {
  if (IMF_FIXDATE.test(value) || RFC_850.test(value)) return Date.parse(value)
  return ASCTIME.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
}
