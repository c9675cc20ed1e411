import { expected, PREVIEW_COUNT, SLOT_COUNT, STORED_SCHEDULE_STATES, wholeNumber } from '@carillon/api'
import type { Cadence } from '@carillon/cadence'
import { z } from 'zod'

import type { Db } from '../db/database.ts'
import { epochMs, filterText, PAGE } from '../kernel/checked-object.ts'
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

export const LIST_OPTIONS = PAGE.extend({
  state: z.enum(STORED_SCHEDULE_STATES, expected(`one of ${STORED_SCHEDULE_STATES.join(', ')}`)).optional(),
  targetKind: filterText.optional(),
  nameContains: filterText.optional(),
})

export type ListOptions = z.input<typeof LIST_OPTIONS>

export const RUN_PAGE = PAGE.extend({
  /** The slot of the last run of the previous page, in epoch milliseconds. */
  before: epochMs.optional(),
})

export type RunPage = z.input<typeof RUN_PAGE>

const CHANGE_ID_SHAPE = expected('the id of the last change of the page before')

export const HISTORY_PAGE = PAGE.extend({
  /** The id of the last change of the previous page. */
  before: z.int(CHANGE_ID_SHAPE).min(1, CHANGE_ID_SHAPE).optional(),
})

export type HistoryPage = z.input<typeof HISTORY_PAGE>

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
export const SLOT_RANGE = z.strictObject(
  {
    /** @default now, by the clock of Postgres */
    from: epochMs.optional(),
    /** @default no end */
    to: epochMs.optional(),
    /** At most `SLOT_COUNT.max`. @default `SLOT_COUNT.default` */
    limit: wholeNumber(SLOT_COUNT).optional(),
  },
  expected('an object'),
)

export type SlotRange = z.input<typeof SLOT_RANGE>

/** Selects the slots that a preview of a cadence shows. */
export const PREVIEW_RANGE = z.strictObject({
  /** @default now */
  from: epochMs.optional(),
  /** At most `PREVIEW_COUNT.max`. @default `PREVIEW_COUNT.default` */
  count: wholeNumber(PREVIEW_COUNT).optional(),
})

export interface PreviewInput extends z.input<typeof PREVIEW_RANGE> {
  readonly cadence: unknown
}

export interface Preview {
  readonly description: string
  readonly slots: readonly SlotPreview[]
  readonly warnings: ReturnType<Cadence['warnings']>
}
