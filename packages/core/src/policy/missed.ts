import type { MissedPolicy } from '@carillon/api'

interface MissedFacts {
  /** Every slot that is due, ascending. */
  readonly due: readonly number[]
  readonly now: number
  readonly policy: MissedPolicy
  /** How late a slot may begin under `skip`, inclusive. */
  readonly startingDeadlineSeconds: number
  /** How long after its nominal instant a slot is due. Its lateness counts from then. */
  readonly spreadOffsetMs: number
}

export interface MissedDecision {
  readonly missed: readonly number[]
  readonly run: number | null
}

/** I11: however many slots are due, at most the last of them runs. The others are recorded as missed (I6). */
export function decideMissed({
  due,
  now,
  policy,
  startingDeadlineSeconds,
  spreadOffsetMs,
}: MissedFacts): MissedDecision {
  const latest = due.at(-1)
  if (latest === undefined) return { missed: [], run: null }
  const isInTime = now - (latest + spreadOffsetMs) <= startingDeadlineSeconds * 1000
  if (policy === 'skip' && !isInTime) return { missed: due, run: null }
  return { missed: due.slice(0, -1), run: latest }
}
