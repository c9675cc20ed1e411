import { nowMs } from '../clock.ts'
import { leadOf, requireAhead } from '../lead-time.ts'

const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.2
const VACUUM_MS_PER_SCHEDULE = 0.012
/** After which its first look at everything is over. */
const UP_MS = 1000

/**
 * When so many schedules can be due, so that all are loaded and the worker is up and waits.
 * @param held beside so many others, which are vacuumed with them.
 */
export function dueAfterLoading(count: number, held = 0): number {
  return Math.ceil(nowMs() + leadOf(LEAD_MS) + count * LOAD_MS_PER_SCHEDULE + held * VACUUM_MS_PER_SCHEDULE)
}

/** @throws LoadedTooLate if the worker has not been up for long enough to wait for them */
export function requireWaiting(dueAt: number): void {
  requireAhead(dueAt - UP_MS)
}
