/** A slot or a waiting run that is due and that no worker has claimed yet. */
export interface Overdue {
  readonly lane: string
  readonly overdueMs: number
  /** True if nothing else in its lane was due earlier. Workers claim what was due earlier first. */
  readonly isFirstInLane: boolean
}

/** A worker whose lease has not expired. */
export interface WorkerRoom {
  /** The lanes that it serves. */
  readonly lanes: ReadonlySet<string>
  /** For how long it has had this lease. */
  readonly aliveForMs: number
  /** For how long it has had room for another run: 0 if it has none, Infinity if it always had some. */
  readonly roomForMs: number
}

/** What is overdue for longer than this may have been passed over: workers with room claim within milliseconds. */
export const OVERDUE_MS = 60_000
/** What is overdue for longer than this is always reported, even if the workers are only busy or the schedule's row is locked. */
export const LONG_OVERDUE_MS = 600_000

/**
 * True if workers passed over something that is due. While the workers have no room, waiting is normal: in a herd or a storm of retries
 * a slot or a run waits longer than a minute, and nothing is wrong. Only time during which a worker was alive counts, because after an
 * outage everything is overdue.
 */
export function isPassedOver({ lane, overdueMs, isFirstInLane }: Overdue, workers: readonly WorkerRoom[]): boolean {
  const serving = workers.filter(({ lanes }) => lanes.has(lane))
  const present = serving.length > 0 ? serving : workers
  const longestMs = present.length === 0 ? Infinity : Math.max(...present.map(({ aliveForMs }) => aliveForMs))
  const passedMs = Math.min(overdueMs, longestMs)
  if (passedMs <= OVERDUE_MS) return false
  const hasRoom = serving.some(({ aliveForMs, roomForMs }) => Math.min(aliveForMs, roomForMs) > OVERDUE_MS)
  return serving.length === 0 || (hasRoom && isFirstInLane) || passedMs > LONG_OVERDUE_MS
}
