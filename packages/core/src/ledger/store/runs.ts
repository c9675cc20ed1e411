import { ATTEMPT_OUTCOMES, SCHEDULE_CHANGES } from '@carillon/api'

import { bigint, columns, instant, integer, json, smallint, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { instantText } from '../../db/parameters.ts'
import { RUN_COLUMNS } from '../../db/shared-columns.ts'
import { sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { Attempt, Run, ScheduleChange } from '../records.ts'

/** A run; undefined if this tenant and project have no run of that id (I9). */
export async function findRun(db: Db | Tx, p: Scope & { id: string }): Promise<Run | undefined> {
  const [run] = await sql`
    select ${RUN_COLUMNS}
    from runs
    where runs.id = ${p.id} and runs.tenant_id = ${p.tenantId} and runs.project_id = ${p.projectId}`.execute(db)
  return run
}

/** A page of a schedule's runs, newest slot first. `before` is the slot of the last run of the previous page; null: the first page. */
export async function listRuns(
  db: Db | Tx,
  p: Scope & { scheduleId: string; before: number | null; limit: number },
): Promise<Run[]> {
  const before = p.before === null ? 'infinity' : instantText(p.before)
  return sql`
    select ${RUN_COLUMNS}
    from runs
    where runs.schedule_id = ${p.scheduleId} and runs.tenant_id = ${p.tenantId} and runs.project_id = ${p.projectId}
      and runs.scheduled_for < ${before}::timestamptz
    order by runs.scheduled_for desc
    limit ${p.limit}`.execute(db)
}

/** The open runs of some schedules. */
export async function listOpenRuns(db: Db | Tx, p: { scheduleIds: readonly string[] }): Promise<Run[]> {
  return sql`
    select ${RUN_COLUMNS}
    from runs
    where runs.schedule_id = any(${p.scheduleIds}::uuid[]) and ${isOpen()}`.execute(db)
}

const ATTEMPT_COLUMNS = columns('attempts', {
  attempt: smallint,
  workerId: uuid,
  outcome: word('attempt_outcome', ATTEMPT_OUTCOMES),
  startedAt: instant,
  completedAt: instant,
  error: json().orNull,
  result: json().orNull,
  completedBy: text.orNull,
})

/** The attempts at a run, in order. */
export async function listAttempts(db: Db | Tx, p: { scheduleId: string; scheduledFor: number }): Promise<Attempt[]> {
  return sql`
    select ${ATTEMPT_COLUMNS}
    from attempts
    where attempts.schedule_id = ${p.scheduleId} and attempts.scheduled_for = ${new Date(p.scheduledFor)}
    order by attempts.attempt`.execute(db)
}

const CHANGE_COLUMNS = columns('changes', {
  id: bigint,
  change: word('schedule_change', SCHEDULE_CHANGES),
  revision: integer,
  nextSlotAt: instant.orNull,
  scheduledFor: instant.orNull,
  actor: text.as(sql`changes.actor_subject`),
  reason: text.orNull,
  changedAt: instant,
})

/**
 * A page of a schedule's history, the latest line first. `before` is the id of the last line of the previous page; null: the first page.
 * The comparison and the order by schedule and id together keep Postgres to `schedule_changes_schedule_idx`. With `schedule_id =` and a few
 * schedules it may walk the lines of all schedules by their ids instead.
 */
export async function listChanges(
  db: Db | Tx,
  p: Scope & { scheduleId: string; before: number | null; limit: number },
): Promise<ScheduleChange[]> {
  return sql`
    select ${CHANGE_COLUMNS}
    from schedule_changes as changes
    where changes.schedule_id >= ${p.scheduleId}
      and (changes.schedule_id, changes.id) < (${p.scheduleId}, ${p.before ?? Number.MAX_SAFE_INTEGER})
      and changes.tenant_id = ${p.tenantId} and changes.project_id = ${p.projectId}
    order by changes.schedule_id desc, changes.id desc
    limit ${p.limit}`.execute(db)
}
