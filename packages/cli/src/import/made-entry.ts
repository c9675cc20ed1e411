import type { ImportEntry } from './import-entry.ts'

/** An entry and the schedule that was made of it. */
export interface MadeEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
}
