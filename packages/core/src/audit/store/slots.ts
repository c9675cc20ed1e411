import { RUN_STATES, type RunState } from '@carillon/api'

import { columns, instant, integer, json, text, uuid, word, type RowFrom } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { stampOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { CADENCE_TEXT } from '../../db/shared-columns.ts'
import { sql } from '../../db/sql.ts'

/** The time from one change of a schedule to the next, with the spec that was in force. */
export interface AuditedSpan {
  readonly revision: number
  /** The next slot of the schedule after the change that begins the span. */
  readonly nextSlotAt: number
  /** When the next change came; null if there is none. */
  readonly endsAt: number | null
  /** JSON text, like `policy`. Both are null if the row of the revision was deleted. */
  readonly cadence: string | null
  readonly policy: string | null
}

/** A schedule with the part of its history that concerns a window of slots. */
export interface AuditedSchedule {
  readonly id: string
  readonly lane: string
  /** Null if the schedule is not active; so is `dueAt`. */
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
  /** In the order of the changes; only spans in which the schedule was active. */
  readonly spans: readonly AuditedSpan[]
}

const SCHEDULE_COLUMNS = columns('page', {
  id: uuid,
  lane: text,
  nextSlotAt: instant.orNull,
  dueAt: instant.orNull,
}).with('span', {
  revision: integer.orNull,
  firstSlotAt: instant.orNull.as(sql`span.next_slot_at`),
  endsAt: instant.orNull,
  cadence: CADENCE_TEXT.orNull,
  policy: text.orNull.as(sql`revisions.policy::text`),
})

type ScheduleRow = RowFrom<typeof SCHEDULE_COLUMNS>

/**
 * Schedules with the spans that ended at or after `from` and have slots up to `to`. Includes deleted schedules: their slots that came due
 * before the deletion have lines as well. A change of one run ends no span. Only such a change has a `scheduled_for`: the statement says so
 * in the words of `schedule_changes_slots_idx`, so that it does not read a million run-nows.
 */
export async function listAuditedSchedules(
  db: Db | Tx,
  p: { ids: readonly string[]; from: Date; to: Date },
): Promise<AuditedSchedule[]> {
  const rows = await sql`
    with page as materialized (
      select schedules.id, schedules.lane, schedules.next_slot_at, schedules.due_at
      from schedules
      where schedules.id = any(${p.ids}::uuid[])
    )
    select ${SCHEDULE_COLUMNS}
    from page
    left join lateral (
      select changes.id, changes.revision, changes.next_slot_at,
        lead(changes.changed_at) over (order by changes.id) as ends_at
      from schedule_changes as changes
      where changes.schedule_id = page.id and changes.scheduled_for is null
    ) as span on span.next_slot_at <= ${p.to} and (span.ends_at is null or span.ends_at >= ${p.from})
    left join schedule_revisions as revisions
      on revisions.schedule_id = page.id and revisions.revision = span.revision
    order by page.id, span.id`.execute(db)
  return [...Map.groupBy(rows, ({ id }) => id).values()].flatMap(toAudited)
}

function toAudited(rows: readonly ScheduleRow[]): AuditedSchedule[] {
  return rows
    .slice(0, 1)
    .map(({ id, lane, nextSlotAt, dueAt }) => ({ id, lane, nextSlotAt, dueAt, spans: rows.flatMap(toSpan) }))
}

function toSpan({ revision, firstSlotAt, endsAt, cadence, policy }: ScheduleRow): AuditedSpan[] {
  if (revision === null || firstSlotAt === null) return []
  return [{ revision, nextSlotAt: firstSlotAt, endsAt, cadence, policy }]
}

/** The slots of a schedule that have a line in the ledger, ascending; by trigger of the run. */
export interface AuditedLines {
  readonly scheduled: readonly number[]
  readonly manual: readonly number[]
}

const LINES_COLUMNS = columns('audited', {
  id: uuid,
  scheduled: json<readonly number[]>().orNull.as(
    sql`json_agg(line.slot order by line.slot) filter (where line.trigger = 'schedule')`,
  ),
  manual: json<readonly number[]>().orNull.as(
    sql`json_agg(line.slot order by line.slot) filter (where line.trigger = 'manual')`,
  ),
})

/**
 * The lines of schedules with slots in a window, both ends included; of each schedule the earliest `limit`. Returned as one list of
 * numbers per schedule: a row for each line would take ten times the memory.
 */
export async function listAuditedLines(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; from: Date; to: Date; limit: number },
): Promise<Map<string, AuditedLines>> {
  const rows = await sql`
    select ${LINES_COLUMNS}
    from unnest(${p.scheduleIds}::uuid[]) as audited(id)
    cross join lateral (
      select (extract(epoch from runs.scheduled_for) * 1000)::bigint as slot, runs.trigger
      from runs
      where runs.schedule_id = audited.id and runs.scheduled_for between ${p.from} and ${p.to}
      order by runs.scheduled_for
      limit ${p.limit}
    ) as line
    group by audited.id`.execute(db)
  return new Map(rows.map(({ id, scheduled, manual }) => [id, { scheduled: scheduled ?? [], manual: manual ?? [] }]))
}

/** Slots between two instants, both included. */
export interface BacklogRange {
  readonly from: number
  readonly to: number
}

const BACKLOG_COLUMNS = columns('backlogs', {
  scheduleId: uuid,
  from: instant.as(sql`backlogs.next_slot_at`),
  to: instant.as(sql`backlogs.until`),
})

/**
 * The slots of schedules whose lines a change left to the backlog writer, if the change came after `madeAfter`. Without a snapshot, read
 * these before the lines: a line that is written in between then appears in both. In the other order it would appear in neither.
 */
export async function listBacklogRanges(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; madeAfter: Date },
): Promise<Map<string, BacklogRange[]>> {
  const rows = await sql`
    select ${BACKLOG_COLUMNS}
    from slot_backlogs as backlogs
    where backlogs.schedule_id = any(${p.scheduleIds}::uuid[]) and backlogs.made_at > ${p.madeAfter}`.execute(db)
  return Map.groupBy(rows, ({ scheduleId }) => scheduleId)
}

/** A slot that came due and has no line. */
export interface LostLine {
  /** The id that its run gets. */
  readonly id: string
  readonly scheduleId: string
  readonly scheduledFor: number
  /** The revision under which it came due. */
  readonly revision: number
}

const RESTORED_COLUMNS = columns('runs', { id: uuid, state: word('run_state', RUN_STATES) })

/**
 * Inserts the missing lines of slots (I6). A slot with attempts did run: its line gets the result of the last attempt. Any other slot
 * becomes `skipped: missed` and does not run, because it may have run before its line was lost (I2, I11). An existing line is kept.
 * Call with the schedules' rows locked.
 * @param p.now an instant that a test sets; null: Postgres' clock
 * @returns the state of each inserted line, by run id
 */
export async function restoreLines(
  tx: Tx,
  p: { lines: readonly LostLine[]; now: Date | null },
): Promise<ReadonlyMap<string, RunState>> {
  const { lines } = p
  const rows = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    )
    insert into runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, attempt_count, token, begun_at,
      started_at, completed_at, error
    )
    select lost.schedule_id, lost.scheduled_for, lost.id, schedules.tenant_id, schedules.project_id, lost.revision, 'schedule',
      case
        when last.attempt is null then 'skipped'
        when last.outcome in ('succeeded', 'cancelled') then last.outcome::text
        else 'failed'
      end::run_state,
      case when last.attempt is null then 'missed' end::run_reason,
      coalesce(last.attempt, 0), coalesce(last.attempt, 0), coalesce(last.started_at, stamp.at), last.started_at,
      coalesce(last.completed_at, stamp.at), last.error
    from unnest(
      ${lines.map(({ scheduleId }) => scheduleId)}::uuid[],
      ${lines.map(({ scheduledFor }) => instantText(scheduledFor))}::timestamptz[],
      ${lines.map(({ id }) => id)}::uuid[],
      ${lines.map(({ revision }) => revision)}::integer[]
    ) as lost(schedule_id, scheduled_for, id, revision)
    join schedules on schedules.id = lost.schedule_id
    cross join stamp
    left join lateral (
      select attempts.attempt, attempts.outcome, attempts.started_at, attempts.completed_at, attempts.error
      from attempts
      where attempts.schedule_id = lost.schedule_id and attempts.scheduled_for = lost.scheduled_for
      order by attempts.attempt desc
      limit 1
    ) as last on true
    on conflict do nothing
    returning ${RESTORED_COLUMNS}`.execute(tx)
  return new Map(rows.map(({ id, state }) => [id, state]))
}
