import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/** From one change of a schedule to the next: which slots were awaited all the while. */
export interface AuditedSpan {
  readonly revision: number
  /** The next slot after the change that opens it. */
  readonly nextSlotAt: number
  /** When the next change came; null if none has yet. */
  readonly endsAt: number | null
  /** JSON text, as the policy; null if somebody took the revision away. */
  readonly cadence: string | null
  readonly policy: string | null
}

/** A schedule with as much of its history as bears on a window of slots. */
export interface AuditedSchedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly targetKind: string
  readonly lane: string
  /** Null if it is not active. */
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
  /** In the order of the changes; only those in which something was awaited. */
  readonly spans: readonly AuditedSpan[]
}

interface Row {
  id: string
  tenant_id: string
  project_id: string
  target_kind: string
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
 * Schedules with the spans that were not over before `from` and awaited something up to `to`. Deleted ones as well: what came due
 * before has its line, too.
 */
export async function listAuditedSchedules(
  db: Db | Tx,
  p: { ids: readonly string[]; from: Date; to: Date },
): Promise<AuditedSchedule[]> {
  const { rows } = await sql<Row>`
    with page as materialized (
      select schedules.id, schedules.tenant_id, schedules.project_id, schedules.target_kind, schedules.lane,
        schedules.next_slot_at, schedules.due_at
      from carillon.schedules
      where schedules.id = any(${p.ids}::uuid[])
    )
    select page.id, page.tenant_id, page.project_id, page.target_kind, page.lane, page.next_slot_at, page.due_at,
      span.revision, span.next_slot_at as first_slot_at, span.ends_at,
      coalesce(
        revisions.cadence_once, revisions.cadence_cron, revisions.cadence_rrule, revisions.cadence_interval,
        revisions.cadence_frequency
      )::text as cadence,
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

function toAudited(rows: readonly Row[]): AuditedSchedule[] {
  return rows.slice(0, 1).map((schedule) => ({
    id: schedule.id,
    tenantId: schedule.tenant_id,
    projectId: schedule.project_id,
    targetKind: schedule.target_kind,
    lane: schedule.lane,
    nextSlotAt: schedule.next_slot_at?.getTime() ?? null,
    dueAt: schedule.due_at?.getTime() ?? null,
    spans: rows.flatMap(toSpan),
  }))
}

function toSpan(row: Row): AuditedSpan[] {
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
