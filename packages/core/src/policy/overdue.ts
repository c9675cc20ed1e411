/** Something that is due and that no worker has claimed yet: a slot, or a run that waits. */
export interface Overdue {
  readonly targetKind: string
  readonly overdueMs: number
  /** Whether nothing in its lane is due before it. Workers claim in that order. */
  readonly isFirstInLane: boolean
}

/** A worker whose lease holds. */
export interface LivingWorker {
  readonly targetKinds: readonly string[]
  /** For how long it has had this lease. */
  readonly aliveForMs: number
  readonly holdsRuns: boolean
}

/** Workers claim within milliseconds. */
export const OVERDUE_MS = 60_000
/** By then somebody must look, though the workers may merely be busy. */
const BACKLOG_MS = 600_000

/**
 * Whether something that is due was passed over, rather than that it waits behind others for workers that are busy: a herd and a
 * storm of retries wait longer than a minute, and nothing is wrong with them. Only the time counts in which a worker was there: after
 * an outage everything is overdue.
 */
export function isPassedOver(
  { targetKind, overdueMs, isFirstInLane }: Overdue,
  workers: readonly LivingWorker[],
): boolean {
  const serving = workers.filter(({ targetKinds }) => targetKinds.includes(targetKind))
  const present = serving.length > 0 ? serving : workers
  const longestMs = present.length === 0 ? Infinity : Math.max(...present.map(({ aliveForMs }) => aliveForMs))
  const passedMs = Math.min(overdueMs, longestMs)
  if (passedMs <= OVERDUE_MS) return false
  const hasIdleWorker = serving.some(({ aliveForMs, holdsRuns }) => !holdsRuns && aliveForMs > OVERDUE_MS)
  return serving.length === 0 || (hasIdleWorker && isFirstInLane) || passedMs > BACKLOG_MS
}
