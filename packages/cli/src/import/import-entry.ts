import type { ScheduleInput } from '@carillon/api'

/** One schedule of an imported file. */
export interface ImportEntry {
  /** Where the entry stands in the file: `line 4`, `schedules[2]`. */
  readonly place: string
  readonly input: ScheduleInput
  /** The reason to pause the schedule with once it is created; null if it is not to be paused. */
  readonly pausedReason: string | null
  readonly skippedSlots: readonly string[]
}

/** An entry that cannot be imported. */
export interface RefusedEntry {
  readonly place: string
  /** Null if the name could not be read. */
  readonly name: string | null
  readonly reason: string
}

/** The content of a file. */
export interface ImportFile {
  readonly entries: readonly ImportEntry[]
  readonly refusals: readonly RefusedEntry[]
  /** Parts that were ignored or changed, for the user to know. */
  readonly notes: readonly string[]
}

/** An entry and the schedule that was created from it. */
export interface CreatedEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
}
