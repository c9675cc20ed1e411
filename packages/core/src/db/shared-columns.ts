import { RUN_REASONS, RUN_STATES, RUN_TRIGGERS, RUN_WAITS } from '@carillon/api'

import { columns, instant, integer, json, smallint, text, uuid, word } from './columns.ts'
import { sql } from './sql.ts'

/* Columns that the statements of several rooms return. */

/** The cadence of a row of `schedule_revisions as revisions`, which has one column for each kind. */
export const CADENCE_COLUMN = sql`
  coalesce(
    revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
    revisions.cadence_frequency
  )`

/** The same as text, which is also the key under which a cadence is cached. */
export const CADENCE_TEXT = text.as(sql`${CADENCE_COLUMN}::text`)

/** Why a slot did not run: one of core's reasons, or one that a module declares. */
export const RUN_REASON = word('run_reason', RUN_REASONS).orOther

/** A line of the ledger as its users see it. */
export const RUN_COLUMNS = columns('runs', {
  id: uuid,
  scheduleId: uuid,
  scheduledFor: instant,
  revision: integer,
  trigger: word('run_trigger', RUN_TRIGGERS),
  state: word('run_state', RUN_STATES),
  reason: RUN_REASON.orNull,
  attemptCount: smallint,
  begunAt: instant,
  startedAt: instant.orNull,
  /** When the backoff before its retry ends; null unless the run waits for a retry. */
  retryAt: instant.orNull.as(sql`case runs.waits_for when 'retry' then runs.due_at end`),
  /** Null if a worker holds the run, or if it has ended. */
  waitsFor: word('run_wait', RUN_WAITS).orNull,
  /** The deadline of a detached run; null in every other state. */
  deadlineAt: instant.orNull.as(sql`case runs.waits_for when 'completion' then runs.due_at end`),
  heartbeatAt: instant.orNull,
  /** What the target called the work that it passed on. */
  reference: text.orNull,
  cancelRequestedAt: instant.orNull,
  completedAt: instant.orNull,
  error: json().orNull,
})
