import { nowMs } from '../clock.ts'
import { leadOf } from '../lead-time.ts'

export const SECOND = 1000
const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.1

/** The next whole second by which this many schedules are loaded and the worker waits. A cron expression has a precision of a second. */
export function wholeSecondAfterLoading(count: number): number {
  return Math.ceil((nowMs() + leadOf(LEAD_MS) + count * LOAD_MS_PER_SCHEDULE) / SECOND) * SECOND
}

/** Each instant rounded up to a whole second, for a peer with slots at whole seconds only. */
export function secondsOf(firstAt: number, work: { slots: number; spacingMs: number }): number[] {
  return Array.from({ length: work.slots }, (_, n) => Math.ceil((firstAt + n * work.spacingMs) / SECOND) * SECOND)
}

/**
 * A cron expression of six fields, in UTC, for one second of every day. It names no date, because searching for a date a year ahead costs a
 * library much more than searching for tomorrow.
 */
export function cronAt(instantMs: number): string {
  const at = new Date(instantMs)
  return `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`
}

/** A cron expression for once a day, spread over an hour. */
export function dailyCron(n: number): string {
  return `${n % 60} 3 * * *`
}
