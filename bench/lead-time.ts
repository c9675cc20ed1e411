import { nowMs } from './clock.ts'

/** Everything came due before it was loaded: nothing waited for it, so nothing was measured. */
export class LoadedTooLate extends Error {}

const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.2
const VACUUM_MS_PER_SCHEDULE = 0.012
/** After this time the worker's first full look is over. */
const UP_MS = 1000

let factor = 1

/** How long before their instant schedules are loaded: this time, or a multiple of it on a slow machine. */
export function leadOf(ms: number): number {
  return ms * factor
}

/** Makes all later leads at least this many times as long. */
export function lengthenLeads(times: number): void {
  factor = Math.max(factor, times)
}

/** @throws LoadedTooLate if loading took longer than its lead */
export function requireAhead(dueAt: number): void {
  const leftMs = dueAt - nowMs()
  if (leftMs < 0) {
    throw new LoadedTooLate(`expected all to be loaded before they are due, got ${Math.round(-leftMs)} ms too late`)
  }
}

/**
 * The earliest instant at which this many schedules can be due, so that all are loaded and the worker is waiting.
 * @param held other schedules in the database, which are vacuumed with them
 */
export function dueAfterLoading(count: number, held = 0): number {
  return Math.ceil(nowMs() + leadOf(LEAD_MS) + count * LOAD_MS_PER_SCHEDULE + held * VACUUM_MS_PER_SCHEDULE)
}

/** @throws LoadedTooLate if the worker was not up early enough */
export function requireWaiting(dueAt: number): void {
  requireAhead(dueAt - UP_MS)
}
