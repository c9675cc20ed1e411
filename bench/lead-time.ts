import { nowMs } from './clock.ts'

/** Everything came due before it was loaded: nothing waited for it, so nothing was measured. */
export class LoadedTooLate extends Error {}

let factor = 1

/** How long before they are due schedules are loaded: this long, or a multiple of it on a machine that needs longer. */
export function leadOf(ms: number): number {
  return ms * factor
}

/** From now on leads are at least so many times as long. */
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
