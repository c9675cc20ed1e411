/** A slot or a waiting run that is due and that no worker has claimed yet. */
export interface Overdue {
  readonly lane: string
  readonly overdueMs: number
  /** Whether nothing in its lane is due before it. Workers claim in that order. */
  readonly isFirstInLane: boolean
}

/** A worker whose lease holds. */
export interface LivingWorker {
  /** The lanes that it serves. */
  readonly lanes: ReadonlySet<string>
  /** For how long it has had this lease. */
  readonly aliveForMs: number
  /** For how long it has had room for another run: 0 if it has none, Infinity if it always had some. */
  readonly roomForMs: number
}

/** Workers claim within milliseconds. */
export const OVERDUE_MS = 60_000
/** After this long an operator should look, even if the workers are only busy or a transaction holds the schedule's row. */
export const BACKLOG_MS = 600_000

/**
 * Whether workers passed over something that is due. Waiting behind others for full workers is normal: a herd or a storm of
 * retries waits longer than a minute, and nothing is wrong. Only time during which a worker was alive counts, because after
 * an outage everything is overdue.
 */
export function isPassedOver({ lane, overdueMs, isFirstInLane }: Overdue, workers: readonly LivingWorker[]): boolean {
  const serving = workers.filter(({ lanes }) => lanes.has(lane))
  const present = serving.length > 0 ? serving : workers
  const longestMs = present.length === 0 ? Infinity : Math.max(...present.map(({ aliveForMs }) => aliveForMs))
  const passedMs = Math.min(overdueMs, longestMs)
  if (passedMs <= OVERDUE_MS) return false
  const hasRoom = serving.some(({ aliveForMs, roomForMs }) => Math.min(aliveForMs, roomForMs) > OVERDUE_MS)
  return serving.length === 0 || (hasRoom && isFirstInLane) || passedMs > BACKLOG_MS
}
