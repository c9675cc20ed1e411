import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import type { Json } from '../../kernel/json.ts'
import type { Caller } from '../../kernel/scope.ts'
import type { Attempt, Run, ScheduleChange } from '../records.ts'

type Within = Pick<Caller, 'tenantId' | 'projectId'>

/** A row as `RUN_COLUMNS` names it. */
export interface RunRow {
  id: string
  schedule_id: string
  scheduled_for: Date
  revision: number
  trigger: Run['trigger']
  state: Run['state']
  reason: Run['reason']
  attempt_count: number
  begun_at: Date
  started_at: Date | null
  retry_at: Date | null
  waits_for: Run['waitsFor']
  cancel_requested_at: Date | null
  completed_at: Date | null
  error: Json
}

export const RUN_COLUMNS = sql`
  runs.id, runs.schedule_id, runs.scheduled_for, runs.revision, runs.trigger, runs.state, runs.reason, runs.attempt_count,
  runs.begun_at, runs.started_at, case runs.waits_for when 'retry' then runs.due_at end as retry_at, runs.waits_for,
  runs.cancel_requested_at, runs.completed_at, runs.error`

/** A run; undefined if this tenant and project have no run of that id (I9). */
export async function findRun(db: Db | Tx, p: Within & { id: string }): Promise<Run | undefined> {
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
  p: Within & { scheduleId: string; before: number | null; limit: number },
): Promise<Run[]> {
  const before = p.before === null ? 'infinity' : new Date(p.before).toISOString()
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
export async function listChanges(db: Db | Tx, p: Within & { scheduleId: string }): Promise<ScheduleChange[]> {
  const { rows } = await sql<{
    change: string
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

export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    revision: row.revision,
    trigger: row.trigger,
    state: row.state,
    reason: row.reason,
    attemptCount: row.attempt_count,
    begunAt: row.begun_at.getTime(),
    startedAt: row.started_at?.getTime() ?? null,
    waitsFor: row.waits_for,
    retryAt: row.retry_at?.getTime() ?? null,
    cancelRequestedAt: row.cancel_requested_at?.getTime() ?? null,
    completedAt: row.completed_at?.getTime() ?? null,
    error: row.error,
  }
}
