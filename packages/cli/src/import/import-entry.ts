import type { ScheduleInput } from '@carillon/api'

/** One schedule of a file that is imported. */
export interface ImportEntry {
  /** Where it stands: `line 4`, `schedules[2]`. */
  readonly place: string
  readonly input: ScheduleInput
  /** Why it is to be paused once it is made; null if it is not. */
  readonly pausedReason: string | null
  readonly skippedSlots: readonly string[]
}

/** What is not imported, and why. */
export interface Refusal {
  readonly place: string
  /** Null if it did not get so far. */
  readonly name: string | null
  readonly reason: string
}

/** What a file says. */
export interface ImportFile {
  readonly entries: readonly ImportEntry[]
  readonly refusals: readonly Refusal[]
  /** What was read otherwise than its author may expect. */
  readonly notes: readonly string[]
}
