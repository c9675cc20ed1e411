/** What happens to a local time that does not exist: `shift` it to the first instant after the gap, or `skip` it. */
export type GapPolicy = 'shift' | 'skip'

/** Which pass of a local time that exists twice counts. */
export type FoldPolicy = 'first' | 'second' | 'both'

export interface DstPolicy {
  readonly gap: GapPolicy
  readonly fold: FoldPolicy
}

/** A fixed time of day: exactly once a day. */
export const ONCE_A_DAY: DstPolicy = { gap: 'shift', fold: 'first' }

/** A rule that repeats within the hour: every 15 minutes stays every 15 minutes, whatever the clocks do. */
export const ELAPSED: DstPolicy = { gap: 'skip', fold: 'both' }
