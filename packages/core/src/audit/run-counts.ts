import { isRunOver, type RunState } from '@carillon/api'

import type { AuditedCounts, AuditedFailures } from './store/schedule-counts.ts'
import type { SlotGroup } from './store/slot-groups.ts'

/** How many lines of a schedule count as runs, and how many as failures. */
export interface LedgerSums {
  readonly runs: number
  readonly failures: number
  /** How many of the runs are open. When one ends, the sums change. */
  readonly open: number
}

export const NO_SUMS: LedgerSums = { runs: 0, failures: 0, open: 0 }

/** The counts of a schedule as its ledger says they should be. */
export type RightCounts = Pick<AuditedCounts, 'runCount' | 'failureCount' | 'consecutiveFailures'>

/** `run_count` counts runs that are open or had an attempt, `failure_count` those that failed. */
export function addSums({ runs, failures, open }: LedgerSums, groups: readonly SlotGroup[]): LedgerSums {
  const sumOf = (isCounted: (group: SlotGroup) => boolean): number =>
    groups.filter(isCounted).reduce((sum, { slots }) => sum + slots, 0)
  return {
    runs: runs + sumOf(({ state, attemptCount }) => isOpen(state) || (state !== null && attemptCount > 0)),
    failures: failures + sumOf(({ state }) => state === 'failed'),
    open: open + sumOf(({ state }) => isOpen(state)),
  }
}

/** @param state null: there are attempts and no run */
function isOpen(state: RunState | null): boolean {
  return state !== null && !isRunOver({ state })
}

/**
 * The counts as they should be; null if they are right. Old lines that were counted may have been dropped, so the counts of an old
 * schedule may be higher than the sums, but not lower.
 * @param completeSince all lines of a schedule that was created later are in the ledger
 * @param failures undefined: they were not read, and the schedule's count of consecutive failures is not judged
 */
export function rightCounts(
  counts: AuditedCounts,
  sums: LedgerSums,
  { completeSince, failures }: { readonly completeSince: number; readonly failures: AuditedFailures | undefined },
): RightCounts | null {
  const { runCount, failureCount, consecutiveFailures, createdAt } = counts
  const isComplete = createdAt > completeSince
  const right = {
    runCount: isComplete ? sums.runs : Math.max(sums.runs, runCount),
    failureCount: isComplete ? sums.failures : Math.max(sums.failures, failureCount),
    consecutiveFailures:
      failures === undefined || failures.isUnclear || (failures.since ?? createdAt) <= completeSince
        ? consecutiveFailures
        : failures.ended,
  }
  const isRight =
    right.runCount === runCount &&
    right.failureCount === failureCount &&
    right.consecutiveFailures === consecutiveFailures
  return isRight ? null : right
}

/** Revisions that the schedule or its runs need and whose rows are gone, with the number of runs that began under each. */
export function missingRevisions(
  { revision, hasRevision }: AuditedCounts,
  groups: readonly SlotGroup[],
): ReadonlyMap<number, number> {
  const missing = new Map<number, number>(hasRevision ? [] : [[revision, 0]])
  for (const group of groups) {
    if (group.revision === null || group.hasRevision) continue
    missing.set(group.revision, (missing.get(group.revision) ?? 0) + group.slots)
  }
  return missing
}
