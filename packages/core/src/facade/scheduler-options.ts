import type { Cadence } from '@carillon/cadence'

import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import type { ScheduleState } from '../schedule.ts'
import type { Db } from '../store/database.ts'
import type { Target } from '../target.ts'

export interface SchedulerDeps {
  readonly db: Db
  readonly targets: ReadonlyMap<string, Target>
  readonly clock?: Clock
  readonly events?: Events
}

export interface SchedulerOptions {
  /** The least distance between two slots of a cadence (E-33). @default 60 */
  readonly minimumSeconds?: number
  /** Active and paused ones; null: any number. A tenant may have limits of its own (E-31). @default 500 */
  readonly maxSchedulesPerProject?: number | null
  /** Of one `user:…` in a project; null: any number (E-32). @default 50 */
  readonly maxSchedulesPerUser?: number | null
  /** Whether secrets are kept by another store, so that nothing is known here of which there are. @default false */
  readonly areSecretsElsewhere?: boolean
  /** For how long the ledger remembers; at least 7. @default 90 */
  readonly retentionDays?: number
}

export interface ChangeOptions {
  /** Refuses the change with `revision_conflict` if the schedule has another one by now. */
  readonly revision?: number
}

export interface ListOptions {
  readonly state?: ScheduleState
  readonly targetKind?: string
  readonly nameContains?: string
  /** The last id of the page before. */
  readonly before?: string
  /** 1..200 @default 50 */
  readonly limit?: number
}

export interface RunPage {
  /** The slot of the last run of the page before. */
  readonly before?: number
  /** 1..200 @default 50 */
  readonly limit?: number
}

/** One slot, as instant and as its cadence's zone tells it. */
export interface SlotPreview {
  readonly scheduledFor: number
  /** RFC 9557: local time, offset and zone. */
  readonly local: string
}

/** A slot of a schedule's cadence. */
export interface ScheduleSlot extends SlotPreview {
  /** Somebody asked to skip it. */
  readonly isSkipped: boolean
}

/** Which slots of a schedule: those in `[from, to)`. */
export interface SlotRange {
  /** @default now, by the database's clock */
  readonly from?: number
  /** @default without end */
  readonly to?: number
  /** 1..1000 @default 50 */
  readonly limit?: number
}

export interface PreviewInput {
  readonly cadence: unknown
  /** @default now */
  readonly from?: number
  /** 1..100 @default 5 */
  readonly count?: number
}

export interface Preview {
  readonly description: string
  readonly slots: readonly SlotPreview[]
  readonly warnings: ReturnType<Cadence['warnings']>
}
