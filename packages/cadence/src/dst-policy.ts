/** What happens to a local time that does not exist: `shift` it to the first instant after the gap, or `skip` it. */
export const GAP_POLICIES = ['shift', 'skip'] as const

/** Which pass of a local time that exists twice counts. */
export const FOLD_POLICIES = ['first', 'second', 'both'] as const

export type GapPolicy = (typeof GAP_POLICIES)[number]
export type FoldPolicy = (typeof FOLD_POLICIES)[number]

export interface DstPolicy {
  readonly gap: GapPolicy
  readonly fold: FoldPolicy
}

/** How densely a rule's local times lie on a day. */
export type Density =
  /** More than 60 minutes apart. */
  | 'fixed'
  /** Some lie 60 minutes or less apart. */
  | 'repeating'
  /** All do, all day long. */
  | 'continuous'

/**
 * A fixed time of day runs exactly once a day. A rule that repeats within the hour follows elapsed time: it runs on both
 * passes of an hour, and a missing hour leaves no hole if it runs in every hour anyway (`skip`: a slot at the gap's end
 * would be one too many). If it does not, skipping could lose a whole day, so what the gap hides runs once, at its end.
 */
export function defaultDst(density: Density): DstPolicy {
  return { gap: density === 'continuous' ? 'skip' : 'shift', fold: density === 'fixed' ? 'first' : 'both' }
}
