import type { RunState } from '@carillon/api'
import { sql } from 'kysely'

import { CADENCE_COLUMN } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { stampOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'

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

interface ScheduleRow {
  id: string
  lane: string
  next_slot_at: Date | null
  due_at: Date | null
  revision: number | null
  first_slot_at: Date | null
  ends_at: Date | null
  cadence: string | null
  policy: string | null
}

/**
 * Schedules with the spans that ended at or after `from` and have slots up to `to`. Includes deleted schedules: their slots that came due
 * before the deletion have lines as well.
 */
export async function listAuditedSchedules(
  db: Db | Tx,
  p: { ids: readonly string[]; from: Date; to: Date },
): Promise<AuditedSchedule[]> {
  const { rows } = await sql<ScheduleRow>`
    with page as materialized (
      select schedules.id, schedules.lane, schedules.next_slot_at, schedules.due_at
      from carillon.schedules
      where schedules.id = any(${p.ids}::uuid[])
    )
    select page.id, page.lane, page.next_slot_at, page.due_at, span.revision, span.next_slot_at as first_slot_at, span.ends_at,
      ${CADENCE_COLUMN}::text as cadence,
      revisions.policy::text as policy
    from page
    left join lateral (
      select changes.id, changes.revision, changes.next_slot_at,
        lead(changes.changed_at) over (order by changes.id) as ends_at
      from carillon.schedule_changes as changes
      where changes.schedule_id = page.id
    ) as span on span.next_slot_at <= ${p.to} and (span.ends_at is null or span.ends_at >= ${p.from})
    left join carillon.schedule_revisions as revisions
      on revisions.schedule_id = page.id and revisions.revision = span.revision
    order by page.id, span.id`.execute(db)
  return [...Map.groupBy(rows, ({ id }) => id).values()].flatMap(toAudited)
}

function toAudited(rows: readonly ScheduleRow[]): AuditedSchedule[] {
  return rows.slice(0, 1).map((schedule) => ({
    id: schedule.id,
    lane: schedule.lane,
    nextSlotAt: schedule.next_slot_at?.getTime() ?? null,
    dueAt: schedule.due_at?.getTime() ?? null,
    spans: rows.flatMap(toSpan),
  }))
}

function toSpan(row: ScheduleRow): AuditedSpan[] {
  if (row.revision === null || row.first_slot_at === null) return []
  return [
    {
      revision: row.revision,
      nextSlotAt: row.first_slot_at.getTime(),
      endsAt: row.ends_at?.getTime() ?? null,
      cadence: row.cadence,
      policy: row.policy,
    },
  ]
}

/** The slots of a schedule that have a line in the ledger, ascending; by trigger of the run. */
export interface AuditedLines {
  readonly scheduled: readonly number[]
  readonly manual: readonly number[]
}

/**
 * The lines of schedules with slots in a window, both ends included; of each schedule the earliest `limit`. Returned as one list of
 * numbers per schedule: a row for each line would take ten times the memory.
 */
export async function listAuditedLines(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; from: Date; to: Date; limit: number },
): Promise<Map<string, AuditedLines>> {
  const { rows } = await sql<{ id: string; scheduled: number[] | null; manual: number[] | null }>`
    select audited.id,
      json_agg(line.slot order by line.slot) filter (where line.trigger = 'schedule') as scheduled,
      json_agg(line.slot order by line.slot) filter (where line.trigger = 'manual') as manual
    from unnest(${p.scheduleIds}::uuid[]) as audited(id)
    cross join lateral (
      select (extract(epoch from runs.scheduled_for) * 1000)::bigint as slot, runs.trigger
      from carillon.runs
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

/**
 * The slots of schedules whose lines a change left to the backlog writer, if the change came after `madeAfter`. Without a snapshot, read
 * these before the lines: a line that is written in between then appears in both. In the other order it would appear in neither.
 */
export async function listBacklogRanges(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; madeAfter: Date },
): Promise<Map<string, BacklogRange[]>> {
  const { rows } = await sql<{ schedule_id: string; next_slot_at: Date; until: Date }>`
    select backlogs.schedule_id, backlogs.next_slot_at, backlogs.until
    from carillon.slot_backlogs as backlogs
    where backlogs.schedule_id = any(${p.scheduleIds}::uuid[]) and backlogs.made_at > ${p.madeAfter}`.execute(db)
  const ranges = Map.groupBy(rows, ({ schedule_id }) => schedule_id)
  return new Map(
    [...ranges].map(([id, found]) => [
      id,
      found.map(({ next_slot_at, until }) => ({ from: next_slot_at.getTime(), to: until.getTime() })),
    ]),
  )
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
  const { rows } = await sql<{ id: string; state: RunState }>`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, attempt_count, token, begun_at,
      started_at, completed_at, error
    )
    select lost.schedule_id, lost.scheduled_for, lost.id, schedules.tenant_id, schedules.project_id, lost.revision, 'schedule',
      case
        when last.attempt is null then 'skipped'
        when last.outcome in ('succeeded', 'cancelled') then last.outcome::text
        else 'failed'
      end::carillon.run_state,
      case when last.attempt is null then 'missed' end::carillon.run_reason,
      coalesce(last.attempt, 0), coalesce(last.attempt, 0), coalesce(last.started_at, stamp.at), last.started_at,
      coalesce(last.completed_at, stamp.at), last.error
    from unnest(
      ${lines.map(({ scheduleId }) => scheduleId)}::uuid[],
      ${lines.map(({ scheduledFor }) => instantText(scheduledFor))}::timestamptz[],
      ${lines.map(({ id }) => id)}::uuid[],
      ${lines.map(({ revision }) => revision)}::integer[]
    ) as lost(schedule_id, scheduled_for, id, revision)
    join carillon.schedules on schedules.id = lost.schedule_id
    cross join stamp
    left join lateral (
      select attempts.attempt, attempts.outcome, attempts.started_at, attempts.completed_at, attempts.error
      from carillon.attempts
      where attempts.schedule_id = lost.schedule_id and attempts.scheduled_for = lost.scheduled_for
      order by attempts.attempt desc
      limit 1
    ) as last on true
    on conflict do nothing
    returning runs.id, runs.state`.execute(tx)
  return new Map(rows.map(({ id, state }) => [id, state]))
}
