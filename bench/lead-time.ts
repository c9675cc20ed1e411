import { nowMs } from './clock.ts'

/** Every schedule came due before it was loaded. No schedule waited for its instant, so nothing was measured. */
export class LoadedTooLate extends Error {}

const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.2
const VACUUM_MS_PER_SCHEDULE = 0.012
/** After this many milliseconds the worker's first full look has ended. */
const UP_MS = 1000

let factor = 1

/** How many milliseconds before their instant schedules are loaded: `ms`, or a multiple of it on a slow machine. */
export function leadOf(ms: number): number {
  return ms * factor
}

/** Makes all later leads at least `times` as long. */
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

/** @throws LoadedTooLate if the worker was not ready early enough */
export function requireWaiting(dueAt: number): void {
  requireAhead(dueAt - UP_MS)
}
