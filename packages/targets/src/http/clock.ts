/** The wall clock, epoch milliseconds. For the date in a Retry-After and that of a signature; due-ness is never held against it (I10). */
export function systemNow(): number {
  return Date.now()
}
