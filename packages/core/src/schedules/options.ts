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
  /** The minimum distance between two slots of a cadence. A tenant may have its own. @default `TENANT_SLOT_DISTANCE_SECONDS.default` */
  readonly minimumSeconds?: number
  /**
   * How many active and paused schedules a project may have; null: no limit. A tenant may have its own.
   * @default `PROJECT_SCHEDULES.default`
   */
  readonly maxSchedulesPerProject?: number | null
  /**
   * How many active and paused schedules each `user:…` may own in a project; null: no limit. A tenant may have its own.
   * @default `USER_SCHEDULES.default`
   */
  readonly maxSchedulesPerUser?: number | null
  /** True if a store outside Carillon keeps the secrets: then creates and edits do not check that a secret exists. @default false */
  readonly areSecretsElsewhere?: boolean
  /** For how many days the ledger keeps its lines: see `RETENTION_DAYS`. */
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
  /** At most `PAGE_SIZE.max`. @default `PAGE_SIZE.default` */
  readonly limit?: number
}

export interface RunPage {
  /** The slot of the last run of the previous page, in epoch milliseconds. */
  readonly before?: number
  /** At most `PAGE_SIZE.max`. @default `PAGE_SIZE.default` */
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
  /** At most `SLOT_COUNT.max`. @default `SLOT_COUNT.default` */
  readonly limit?: number
}

export interface PreviewInput {
  readonly cadence: unknown
  /** @default now */
  readonly from?: number
  /** At most `PREVIEW_COUNT.max`. @default `PREVIEW_COUNT.default` */
  readonly count?: number
}

export interface Preview {
  readonly description: string
  readonly slots: readonly SlotPreview[]
  readonly warnings: ReturnType<Cadence['warnings']>
}
