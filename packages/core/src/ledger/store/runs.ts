import type { ScheduleChangeKind } from '@carillon/api'
import { sql } from 'kysely'

import { RUN_COLUMNS, type RunRow } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { instantText } from '../../db/parameters.ts'
import type { Json } from '../../kernel/json.ts'
import type { Scope } from '../../kernel/scope.ts'
import { toRun, type Attempt, type Run, type ScheduleChange } from '../records.ts'

/** A run; undefined if this tenant and project have no run of that id (I9). */
export async function findRun(db: Db | Tx, p: Scope & { id: string }): Promise<Run | undefined> {
  const { rows } = await sql<RunRow>`
    select ${RUN_COLUMNS}
    from carillon.runs
    where runs.id = ${p.id} and runs.tenant_id = ${p.tenantId} and runs.project_id = ${p.projectId}`.execute(db)
  const [row] = rows
  return row && toRun(row)
}

/** A page of a schedule's runs, newest slot first. `before` is the slot of the last run of the previous page; null: the first page. */
export async function listRuns(
  db: Db | Tx,
  p: Scope & { scheduleId: string; before: number | null; limit: number },
): Promise<Run[]> {
  const before = p.before === null ? 'infinity' : instantText(p.before)
  const { rows } = await sql<RunRow>`
    select ${RUN_COLUMNS}
    from carillon.runs
    where runs.schedule_id = ${p.scheduleId} and runs.tenant_id = ${p.tenantId} and runs.project_id = ${p.projectId}
      and runs.scheduled_for < ${before}::timestamptz
    order by runs.scheduled_for desc
    limit ${p.limit}`.execute(db)
  return rows.map(toRun)
}

/** The open runs of some schedules. */
export async function listOpenRuns(db: Db | Tx, p: { scheduleIds: readonly string[] }): Promise<Run[]> {
  const { rows } = await sql<RunRow>`
    select ${RUN_COLUMNS}
    from carillon.runs
    where runs.schedule_id = any(${p.scheduleIds}::uuid[]) and ${isOpen()}`.execute(db)
  return rows.map(toRun)
}

/** The attempts at a run, in order. */
export async function listAttempts(db: Db | Tx, p: { scheduleId: string; scheduledFor: number }): Promise<Attempt[]> {
  const { rows } = await sql<{
    attempt: number
    worker_id: string
    outcome: Attempt['outcome']
    started_at: Date
    completed_at: Date
    error: Json
    result: Json
  }>`
    select attempts.attempt, attempts.worker_id, attempts.outcome, attempts.started_at, attempts.completed_at,
      attempts.error, attempts.result
    from carillon.attempts
    where attempts.schedule_id = ${p.scheduleId} and attempts.scheduled_for = ${new Date(p.scheduledFor)}
    order by attempts.attempt`.execute(db)
  return rows.map((row) => ({
    attempt: row.attempt,
    workerId: row.worker_id,
    outcome: row.outcome,
    startedAt: row.started_at.getTime(),
    completedAt: row.completed_at.getTime(),
    error: row.error,
    result: row.result,
  }))
}

/** The history of a schedule, oldest change first. */
export async function listChanges(db: Db | Tx, p: Scope & { scheduleId: string }): Promise<ScheduleChange[]> {
  const { rows } = await sql<{
    change: ScheduleChangeKind
    revision: number
    next_slot_at: Date | null
    actor_subject: string
    reason: string | null
    changed_at: Date
  }>`
    select changes.change, changes.revision, changes.next_slot_at, changes.actor_subject, changes.reason, changes.changed_at
    from carillon.schedule_changes as changes
    where changes.schedule_id = ${p.scheduleId} and changes.tenant_id = ${p.tenantId}
      and changes.project_id = ${p.projectId}
    order by changes.id`.execute(db)
  return rows.map((row) => ({
    change: row.change,
    revision: row.revision,
    nextSlotAt: row.next_slot_at?.getTime() ?? null,
    actor: row.actor_subject,
    reason: row.reason,
    changedAt: row.changed_at.getTime(),
  }))
}
