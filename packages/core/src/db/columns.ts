import type { RunReason, RunState, RunTrigger, RunWait } from '@carillon/api'
import { sql } from 'kysely'

import type { Json } from '../kernel/json.ts'

/* Columns that the statements of several rooms select. */

/** The cadence of a row of `carillon.schedule_revisions as revisions`, which has one column for each kind. */
export const CADENCE_COLUMN = sql`
  coalesce(
    revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
    revisions.cadence_frequency
  )`

/** A row as `RUN_COLUMNS` names it. */
export interface RunRow {
  id: string
  schedule_id: string
  scheduled_for: Date
  revision: number
  trigger: RunTrigger
  state: RunState
  reason: RunReason | null
  attempt_count: number
  begun_at: Date
  started_at: Date | null
  retry_at: Date | null
  waits_for: RunWait | null
  cancel_requested_at: Date | null
  completed_at: Date | null
  error: Json
}

export const RUN_COLUMNS = sql`
  runs.id, runs.schedule_id, runs.scheduled_for, runs.revision, runs.trigger, runs.state, runs.reason, runs.attempt_count,
  runs.begun_at, runs.started_at, case runs.waits_for when 'retry' then runs.due_at end as retry_at, runs.waits_for,
  runs.cancel_requested_at, runs.completed_at, runs.error`
