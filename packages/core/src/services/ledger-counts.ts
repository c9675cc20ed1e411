import type { AuditedFailures } from '../store/audited-failures.ts'
import type { AuditedCounts, SlotGroup } from '../store/audited-ledger.ts'
import type { NewFinding } from '../store/audits.ts'

/** How many of a schedule's lines count as runs, and how many as failures. */
export interface LedgerSums {
  readonly runs: number
  readonly failures: number
  /** How many of them are not over: they may still change what the others add up to. */
  readonly open: number
}

export const NO_SUMS: LedgerSums = { runs: 0, failures: 0, open: 0 }

/** The counts of a schedule as they should be. */
export type RightCounts = Pick<AuditedCounts, 'runCount' | 'failureCount' | 'consecutiveFailures'>

const OPEN_STATES: ReadonlySet<string> = new Set(['pending', 'running', 'retrying'])

/** `run_count` counts the runs that were tried or are not over, `failure_count` those that failed. */
export function addSums({ runs, failures, open }: LedgerSums, groups: readonly SlotGroup[]): LedgerSums {
  const sumOf = (isCounted: (group: SlotGroup) => boolean): number =>
    groups.filter(isCounted).reduce((sum, { slots }) => sum + slots, 0)
  return {
    runs: runs + sumOf(({ state, attemptCount }) => state !== null && (attemptCount > 0 || OPEN_STATES.has(state))),
    failures: failures + sumOf(({ state }) => state === 'failed'),
    open: open + sumOf(({ state }) => state !== null && OPEN_STATES.has(state)),
  }
}

/**
 * Null if the counts are right. Lines of an old schedule are gone that were counted, so its counts are only known not to be lower than
 * the sums.
 * @param completeSince all lines of a schedule that was made later are in the ledger
 * @param failures undefined: the failures in a row were not counted
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

/** A count that is too high may be all that is left of lines that somebody deleted. */
export function countFinding(counts: RightCounts & { readonly id: string }, right: RightCounts): NewFinding {
  const { id, runCount, failureCount, consecutiveFailures } = counts
  const missing = Math.max(runCount - right.runCount, failureCount - right.failureCount, 0)
  const remedy =
    missing === 0
      ? 'nothing is left to do'
      : `the lines of ${missing} may be lost: look for them in a backup, unless somebody changed the count by hand`
  const detail =
    `the schedule counted ${runCount} runs, ${failureCount} of them failed, ${consecutiveFailures} in a row; its ledger has ` +
    `${right.runCount}, ${right.failureCount} and ${right.consecutiveFailures}: the counts were set right; ${remedy}`
  return { kind: 'count_wrong', scheduleId: id, scheduledFor: null, detail, isRepaired: true }
}
