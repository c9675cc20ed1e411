import { SCHEDULE_CHANGES, type ScheduleChangeKind } from '@carillon/api'

import { columns, instant, text, uuid, word } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { activeLanes } from '../../db/indexed-sql.ts'
import { sql } from '../../db/sql.ts'

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

const COMING_DUE_COLUMNS = columns('ordered', { lane: text }).with('due', {
  id: uuid,
  dueAt: instant.present,
  nextSlotAt: instant.present,
})

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
  return sql`
    with recursive ${activeLanes()}
    select ${COMING_DUE_COLUMNS}
    from (
      select lanes.lane,
        case when lanes.lane = ${p.resume?.lane ?? null}::text then ${resumeAt}::timestamptz end as resume_at
      from lanes
      where lanes.lane >= ${p.resume?.lane ?? ''}::text
      order by lanes.lane
    ) as ordered
    cross join lateral (
      select schedules.id, schedules.due_at, schedules.next_slot_at
      from schedules
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
}

/** One row of `schedule_changes`. */
export interface LoggedChange {
  /** Decimal text: it may exceed what a JavaScript number holds. */
  readonly id: string
  readonly scheduleId: string
  readonly change: ScheduleChangeKind
  readonly changedAt: number
}

const CHANGE_COLUMNS = columns('changes', {
  id: text.as(sql`changes.id::text`),
  scheduleId: uuid,
  change: word('schedule_change', SCHEDULE_CHANGES),
  changedAt: instant,
})

/** The changes whose ids follow `after`, in the order of their ids. */
export async function listChangesAfter(db: Db, p: { after: string; limit: number }): Promise<LoggedChange[]> {
  return sql`
    select ${CHANGE_COLUMNS}
    from schedule_changes as changes
    where changes.id > ${p.after}::bigint
    order by changes.id
    limit ${p.limit}`.execute(db)
}

const LATEST_CHANGE_COLUMNS = columns('changes', { id: text.as(sql`coalesce(max(changes.id), 0)::text`) })

/** The highest id of a change; '0' if there is none. */
export async function findLatestChange(db: Db): Promise<string> {
  const [latest] = await sql`
    select ${LATEST_CHANGE_COLUMNS} from schedule_changes as changes`.execute(db)
  return latest?.id ?? '0'
}
