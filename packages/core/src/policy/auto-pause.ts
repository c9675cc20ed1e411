/** The `paused_reason` of a schedule that paused itself: tells it from one that a person paused. */
export const AUTO_PAUSE_REASON = 'auto:consecutive_failures'

/** 0 is off. One or two failures are no pattern. */
export function isThreshold(n: number): boolean {
  return n === 0 || (Number.isInteger(n) && n >= 3 && n <= 100)
}

/**
 * Whether a schedule pauses itself (E-55). What counts are runs that failed for good, one after the other: an attempt
 * that will be retried does not, a success sets the count back.
 */
export function shouldAutoPause({
  threshold,
  consecutiveFailures,
}: {
  readonly threshold: number
  readonly consecutiveFailures: number
}): boolean {
  // At least, not exactly: the threshold may have been lowered below the count.
  return threshold !== 0 && consecutiveFailures >= threshold
}
