import type { Refusal, RunReason } from '@carillon/api'

import { decideMissed } from './missed.ts'
import { decideOverlap, type OpenRun, type SupersededRun } from './overlap.ts'
import type { SchedulePolicy } from './schedule-policy.ts'

/** What BEGIN decides by, for one schedule. */
interface BeginFacts {
  readonly slots: {
    /** The slots that are due, ascending. */
    readonly due: readonly number[]
    /** The first slot after them; null if there is none. */
    readonly next: number | null
  }
  /** Slots that a caller asked to skip. */
  readonly excluded: ReadonlySet<number>
  readonly now: number
  readonly policy: SchedulePolicy
  readonly spreadOffsetMs: number
  /** The open runs of the schedule, read under its row's lock. */
  readonly open: readonly OpenRun[]
  /** Why the schedule has no permission to act now; null if it has. */
  readonly grantRefusal: Refusal | null
}

interface SkippedSlot {
  readonly slot: number
  readonly reason: RunReason
}

export interface BeginDecision {
  /** In the order of their slots. `skipped` and `run` together hold every due slot exactly once (I6). */
  readonly skipped: readonly SkippedSlot[]
  /** The slot that begins, at most one (I11); null if none does. `pending` if it waits for another run to end. */
  readonly run: { readonly slot: number; readonly state: 'running' | 'pending' } | null
  /** Waiting runs that `run` replaces. */
  readonly supersede: readonly SupersededRun[]
  /** Ids of running runs to cancel. */
  readonly cancel: readonly string[]
}

/**
 * What BEGIN does with the due slots of one claimed schedule. The rules apply in this order, each to the slots that the
 * rules before it have left: excluded, missed, permission, overlap.
 */
export function decideBegin(claimed: BeginFacts): BeginDecision {
  const { slots, excluded, policy, open, grantRefusal } = claimed
  const isExcluded = (slot: number) => excluded.has(slot)
  const { missed, run: candidate } = missedOf(
    claimed,
    slots.due.filter((slot) => !isExcluded(slot)),
  )
  const skipped: SkippedSlot[] = [
    ...slots.due.filter(isExcluded).map((slot) => ({ slot, reason: 'excluded' as const })),
    ...missed.map((slot) => ({ slot, reason: 'missed' as const })),
  ]
  if (candidate === null) return nothingBegins(skipped)
  if (grantRefusal !== null) return nothingBegins([...skipped, { slot: candidate, reason: grantRefusal }])
  const { decision, ...ended } = decideOverlap({ policy: policy.overlap, open })
  if (decision === 'skip') return nothingBegins([...skipped, { slot: candidate, reason: 'overlap' }])
  return {
    skipped: inOrder(skipped),
    run: { slot: candidate, state: decision === 'run' ? 'running' : 'pending' },
    ...ended,
  }
}

/**
 * After a long outage a caller may pass the due slots in portions. If `next` is due as well, the last due slot is in a later portion,
 * so no slot of this portion runs: otherwise every portion would run one, which breaks I11.
 */
function missedOf({ slots, now, policy, spreadOffsetMs }: BeginFacts, due: readonly number[]) {
  if (slots.next !== null && slots.next + spreadOffsetMs <= now) return { missed: due, run: null }
  const { missed, startingDeadlineSeconds } = policy
  return decideMissed({ due, now, policy: missed, startingDeadlineSeconds, spreadOffsetMs })
}

/** No slot begins, so the open runs stay as they are. */
function nothingBegins(skipped: readonly SkippedSlot[]): BeginDecision {
  return { skipped: inOrder(skipped), run: null, supersede: [], cancel: [] }
}

function inOrder(skipped: readonly SkippedSlot[]): SkippedSlot[] {
  return skipped.toSorted((a, b) => a.slot - b.slot)
}
