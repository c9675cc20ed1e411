/** The wall clock, epoch milliseconds. Only a date in a Retry-After is held against it; due-ness never is (I10). */
export function systemNow(): number {
  return Date.now()
}
