/** If a DST change skips a local time: `shift` moves its slot to the first instant after the gap, `skip` drops the slot. */
export const GAP_POLICIES = ['shift', 'skip'] as const

/** If a local time happens twice: the first pass is a slot, the second, or both. */
export const FOLD_POLICIES = ['first', 'second', 'both'] as const

/** The two DST changes that cause a warning: the clocks go forward (`dst_gap`) or back (`dst_fold`). */
export const DST_WARNING_CODES = ['dst_gap', 'dst_fold'] as const

/** What a DST change does to a local time of a cadence. */
export const DST_EFFECTS = ['shifted', 'skipped', 'first_pass', 'second_pass', 'both_passes'] as const

export type WarningCode = (typeof DST_WARNING_CODES)[number]
export type DstEffect = (typeof DST_EFFECTS)[number]
export type GapPolicy = (typeof GAP_POLICIES)[number]
export type FoldPolicy = (typeof FOLD_POLICIES)[number]

/** What a cadence does with local times that a DST change skips (`gap`) or repeats (`fold`). */
export interface DstPolicy {
  readonly gap: GapPolicy
  readonly fold: FoldPolicy
}

/** The policy as the user writes it. An absent field has a default that depends on the rule: see `resolveDst`. */
export interface DstSpec {
  readonly gap?: GapPolicy
  readonly fold?: FoldPolicy
}

/** How close together the times of a rule are within one day. */
export type Density =
  /** Neighbouring slots are always more than 60 minutes apart. */
  | 'fixed'
  /** Some neighbouring slots are 60 minutes or less apart. */
  | 'repeating'
  /** Neighbouring slots are never more than 60 minutes apart, day and night. */
  | 'continuous'

/**
 * Fills in the defaults of a policy. A fixed time of day runs exactly once a day. A rule that repeats within the hour
 * follows elapsed time, so it runs in both passes of a repeated hour. In a gap, a rule that runs around the clock skips
 * the missing times: a slot at the end of the gap would be one too many. Any other rule runs once at the end of the gap,
 * because skipping could lose its whole day.
 */
export function resolveDst(spec: DstSpec | undefined, density: Density): DstPolicy {
  const gap = density === 'continuous' ? 'skip' : 'shift'
  const fold = density === 'fixed' ? 'first' : 'both'
  return { gap, fold, ...spec }
}
