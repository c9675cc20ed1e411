import { sql } from 'kysely'

import type { Db } from '../../db/database.ts'
import { activeLanes } from '../../db/indexed-sql.ts'

/** A position in the index of next slots (`schedules_agenda_idx`), which is ordered by lane. */
export interface AgendaPosition {
  readonly lane: string
  readonly dueAt: number
  readonly id: string
}

/** An active schedule and its next slot. */
export interface ComingDue extends AgendaPosition {
  readonly nextSlotAt: number
}

/**
 * Schedules that come due after one instant and up to another, lane by lane, in portions. Reads the index entries that it returns, and
 * one for each lane.
 * @param p.after null: no lower bound
 * @param p.resume the last schedule of the previous portion; null: this is the first portion
 */
export async function listComingDue(
  db: Db,
  p: { after: Date | null; until: Date; resume: AgendaPosition | null; limit: number },
): Promise<ComingDue[]> {
  const resumeAt = p.resume === null ? null : new Date(p.resume.dueAt)
  const { rows } = await sql<{ lane: string; id: string; due_at: Date; next_slot_at: Date }>`
    with recursive ${activeLanes()}
    select ordered.lane, due.id, due.due_at, due.next_slot_at
    from (
      select lanes.lane,
        case when lanes.lane = ${p.resume?.lane ?? null}::text then ${resumeAt}::timestamptz end as resume_at
      from lanes
      where lanes.lane >= ${p.resume?.lane ?? ''}::text
      order by lanes.lane
    ) as ordered
    cross join lateral (
      select schedules.id, schedules.due_at, schedules.next_slot_at
      from carillon.schedules
      where schedules.state = 'active'
        and schedules.lane = ordered.lane
        and (schedules.due_at, schedules.id) > (
          coalesce(ordered.resume_at, ${p.after}::timestamptz, '-infinity'),
          case when ordered.resume_at is null then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else ${p.resume?.id ?? null} end::uuid
        )
        and schedules.due_at <= ${p.until}
      order by schedules.due_at, schedules.id
    ) as due
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({
    lane: row.lane,
    id: row.id,
    dueAt: row.due_at.getTime(),
    nextSlotAt: row.next_slot_at.getTime(),
  }))
}

/** One row of `schedule_changes`. */
export interface LoggedChange {
  /** Decimal text: it may exceed what a JavaScript number holds. */
  readonly id: string
  readonly scheduleId: string
  readonly changedAt: number
}

/** The changes whose ids follow `after`, in the order of their ids. */
export async function listChangesAfter(db: Db, p: { after: string; limit: number }): Promise<LoggedChange[]> {
  const { rows } = await sql<{ id: string; schedule_id: string; changed_at: Date }>`
    select changes.id::text as id, changes.schedule_id, changes.changed_at
    from carillon.schedule_changes as changes
    where changes.id > ${p.after}::bigint
    order by changes.id
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ id: row.id, scheduleId: row.schedule_id, changedAt: row.changed_at.getTime() }))
}

/** The highest id of a change; '0' if there is none. */
export async function findLatestChange(db: Db): Promise<string> {
  const { rows } = await sql<{ id: string }>`
    select coalesce(max(changes.id), 0)::text as id from carillon.schedule_changes as changes`.execute(db)
  return rows[0]?.id ?? '0'
}
