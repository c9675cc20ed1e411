import type { ScheduleState } from '@carillon/api'
import type { Cadence } from '@carillon/cadence'

import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { Target } from '../ports/target.ts'

export interface SchedulerDeps {
  readonly db: Db
  readonly targets: ReadonlyMap<string, Target>
  readonly clock?: Clock
  readonly events?: Events
}

export interface SchedulerOptions {
  /** The minimum distance between two slots of a cadence. A tenant may have its own. @default 60 */
  readonly minimumSeconds?: number
  /** How many active and paused schedules a project may have; null: no limit. A tenant may have its own limit. @default 500 */
  readonly maxSchedulesPerProject?: number | null
  /** How many active and paused schedules each `user:…` may own in a project; null: no limit. A tenant may have its own. @default 50 */
  readonly maxSchedulesPerUser?: number | null
  /** True if a store outside Carillon keeps the secrets: then creates and edits do not check that a secret exists. @default false */
  readonly areSecretsElsewhere?: boolean
  /** For how many days the ledger keeps its lines; at least 7. @default 90 */
  readonly retentionDays?: number
}

export interface ChangeOptions {
  /** The change fails with `revision_conflict` if the schedule has another revision. */
  readonly revision?: number
}

export interface ListOptions {
  readonly state?: ScheduleState
  readonly targetKind?: string
  readonly nameContains?: string
  /** The last id of the previous page. */
  readonly before?: string
  /** 1..200 @default 50 */
  readonly limit?: number
}

export interface RunPage {
  /** The slot of the last run of the previous page, in epoch milliseconds. */
  readonly before?: number
  /** 1..200 @default 50 */
  readonly limit?: number
}

/** One slot, as an instant and in the time zone of its cadence. */
export interface SlotPreview {
  readonly scheduledFor: number
  /** Local time, offset and zone, as in RFC 9557. */
  readonly local: string
}

/** A slot of a schedule's cadence. */
export interface ScheduleSlot extends SlotPreview {
  /** True if a caller skipped it. */
  readonly isSkipped: boolean
}

/** Selects the slots of a schedule in `[from, to)`. Instants are epoch milliseconds. */
export interface SlotRange {
  /** @default now, by the clock of Postgres */
  readonly from?: number
  /** @default no end */
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
