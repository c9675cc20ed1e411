import { isRefusal, RUN_REASONS, type RunState } from '@carillon/api'

/** One slot in the ledger: its run and its attempts. */
export interface LedgerSlot {
  /** Null if there are attempts and no run. */
  readonly state: RunState | null
  readonly reason: string | null
  /** The attempts that the run's row counts, the one under way included. */
  readonly attemptCount: number
  /** The count of attempt rows, and the numbers of the first and the last; 0 if there are none. */
  readonly attempts: number
  readonly firstAttempt: number
  readonly lastAttempt: number
  /** The count of attempts that ended the run, and number and outcome of the last of these. All others failed or were lost. */
  readonly decisive: number
  readonly decisiveAttempt: number
  readonly decisiveOutcome: 'succeeded' | 'cancelled' | 'malformed' | null
  /** True if the run's end is recorded as earlier than the end of its last attempt. */
  readonly endsBeforeAttempt: boolean
  /** True if the run's error says that BEGIN could not read the spec. */
  readonly isUnreadable: boolean
  /** True if an older version wrote the run, by other rules. */
  readonly isLegacy: boolean
}

export interface SlotFault {
  readonly kind: 'attempt_missing' | 'run_contradicted'
  /** What is wrong. The caller adds what to do. */
  readonly problem: string
}

/**
 * Checks the state of a run. Returns null if the state follows from the attempts, by the rules that begin, take, settle and rescue use.
 *
 * | state     | attempts, by count             | how the last one ended    | reason                 |
 * |-----------|--------------------------------|---------------------------|------------------------|
 * | pending   | none                           |                           | none                   |
 * | running, detached | one less: the last is under way | failed or lost, if any | none              |
 * | retrying  | one or more                    | failed or lost            | none                   |
 * | succeeded | one or more                    | succeeded                 | none                   |
 * | failed    | one or more                    | failed, lost or malformed | none, superseded, or a lost permission |
 * | failed    | none                           |                           | none; its error says `unreadable_spec` |
 * | cancelled | any number                     | not succeeded, not malformed | none                |
 * | skipped   | none                           |                           | one                    |
 *
 * Every attempt but the last failed or was lost, and a run does not end before its last attempt. CHECK constraints of the table cover
 * two more rules: where there must be a reason, and which waiting runs were tried.
 */
export function judgeSlot(slot: LedgerSlot): SlotFault | null {
  return missingAttempts(slot) ?? contradiction(slot)
}

function missingAttempts({ state, attemptCount, attempts, firstAttempt, lastAttempt }: LedgerSlot): SlotFault | null {
  if (state === null) return null
  // The attempt of a run that is held or detached is not over.
  const expected = state === 'running' || state === 'detached' ? attemptCount - 1 : attemptCount
  const isComplete = attempts === expected && (expected === 0 || (firstAttempt === 1 && lastAttempt === expected))
  if (isComplete) return null
  const wanted = expected === 0 ? 'no attempts' : expected === 1 ? 'attempt 1' : `attempts 1 to ${expected}`
  const found =
    attempts === 0
      ? 'none'
      : attempts === 1
        ? `attempt ${lastAttempt}`
        : `${attempts} attempts numbered from ${firstAttempt} to ${lastAttempt}`
  return { kind: 'attempt_missing', problem: `expected ${wanted} of a run that is ${state}, got ${found}` }
}

function contradiction(slot: LedgerSlot): SlotFault | null {
  const problem = contradictionOf(slot)
  return problem === null ? null : { kind: 'run_contradicted', problem }
}

const OUTCOME_TEXTS = { succeeded: 'succeeded', cancelled: 'was cancelled', malformed: 'was malformed' } as const

function contradictionOf(slot: LedgerSlot): string | null {
  const { state, decisive, decisiveAttempt, lastAttempt, isLegacy } = slot
  if (state === null) return null
  if (decisive > 1 || (decisive === 1 && decisiveAttempt !== lastAttempt)) {
    const found = decisive === 1 ? '' : `${decisive} attempts, the last of them `
    return `expected only the last attempt, ${lastAttempt}, to end the run, got ${found}attempt ${decisiveAttempt}`
  }
  const problem = stateProblem(slot)
  if (problem !== null || isLegacy) return problem
  if (!isReasonOf(state, slot.reason)) return `it is ${state} with the reason ${slot.reason ?? 'none'}`
  return slot.endsBeforeAttempt ? 'it ended before its last attempt did' : null
}

function stateProblem(slot: LedgerSlot): string | null {
  const { state, attempts, decisiveOutcome: last, isUnreadable, isLegacy } = slot
  const lastText = last === null ? (attempts === 0 ? 'was not made' : 'failed or was lost') : OUTCOME_TEXTS[last]
  const unless = (isFine: boolean): string | null =>
    isFine ? null : `it is ${state ?? ''}, but its last attempt ${lastText}`
  switch (state) {
    case null:
    case 'pending':
      return null
    case 'skipped':
      return attempts === 0 ? null : 'it is skipped, but it was attempted'
    case 'running':
    case 'detached':
    case 'retrying':
      return unless(last === null)
    case 'succeeded':
      return unless(last === 'succeeded')
    case 'cancelled':
      return unless(last === null || last === 'cancelled')
    case 'failed':
      return unless(attempts === 0 ? isUnreadable || isLegacy : last === null || last === 'malformed')
  }
}

function isReasonOf(state: RunState, reason: string | null): boolean {
  if (state === 'skipped' || reason === null) return true
  // A reason of a module says why the run was refused.
  return (
    state === 'failed' && (reason === 'superseded' || isRefusal(reason) || !RUN_REASONS.some((own) => own === reason))
  )
}
