import { sql } from 'kysely'

import type { RunReason } from '../policy/run-state.ts'
import type { Db, Tx } from './database.ts'
import { JOB_KEY_OF_RUN } from './job-keys.ts'
import { nowOf } from './now.ts'
import { isOpen } from './open-runs.ts'

/** A slot of a schedule, as the engine's jobs name it. */
export interface SlotName {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly targetKind: string
}

interface SlotRow {
  schedule_id: string
  scheduled_for: Date
  target_kind: string
}

/**
 * Ends runs that wait, by rule: superseded by the next slot, displaced by a newer one, or because their schedule changed.
 * Returns those that were still waiting; their jobs are no longer needed. Call with their schedules' rows locked.
 */
export async function endWaitingRuns(
  tx: Tx,
  p: {
    runIds: readonly string[]
    state: 'failed' | 'skipped' | 'cancelled'
    reason: RunReason | null
    now: Date | null
  },
): Promise<SlotName[]> {
  const { rows } = await sql<SlotRow>`
    with ended as (
      update carillon.runs
      set state = ${p.state}::carillon.run_state,
        reason = ${p.reason}::carillon.run_reason,
        retry_at = null,
        completed_at = ${nowOf(p.now)}
      where runs.id = any(${p.runIds}::uuid[]) and runs.state in ('pending', 'retrying')
      returning runs.schedule_id, runs.scheduled_for, runs.revision
    )
    select ended.schedule_id, ended.scheduled_for, revisions.target_kind
    from ended
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = ended.schedule_id and revisions.revision = ended.revision`.execute(tx)
  return rows.map(toSlotName)
}

/**
 * The runs of schedules whose turn has come: they wait to start, and no other run of their schedule is under way, or about to
 * be tried again. Call with the schedules' rows locked.
 */
export async function findPendingRuns(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<SlotName[]> {
  const { rows } = await sql<SlotRow>`
    select runs.schedule_id, runs.scheduled_for, revisions.target_kind
    from carillon.runs
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.state = 'pending'
      and not exists (
        select from carillon.runs as held
        where held.schedule_id = runs.schedule_id
          and ${isOpen('held')}
          and held.state <> 'pending'
      )`.execute(tx)
  return rows.map(toSlotName)
}

/**
 * Runs that wait for a job which is not there, with when it should come: null is at once. One that waits for another run's
 * end is none of them: that end brings its job.
 *
 * Given how long they are overdue, only retries that should have been tried so long ago: to look for the job of every retry
 * that waits costs as much as there are, and a job is missed no sooner than it is due. Null finds all.
 */
export async function findStrandedRuns(
  db: Db,
  p: { limit: number; overdueMs: number | null; now: Date | null },
): Promise<(SlotName & { readonly runAt: number | null })[]> {
  const { rows } = await sql<SlotRow & { run_at: Date | null }>`
    select runs.schedule_id, runs.scheduled_for, revisions.target_kind,
      case when runs.retry_at > ${nowOf(p.now)} then runs.retry_at end as run_at
    from carillon.runs
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where ${isOpen()}
      and (
        runs.state = 'pending'
        or (
          runs.state = 'retrying'
          and (
            ${p.overdueMs}::double precision is null
            or runs.retry_at <= ${nowOf(p.now)} - ${p.overdueMs}::double precision * interval '1 millisecond'
          )
        )
      )
      and not exists (select from carillon_jobs.jobs where jobs.key = ${JOB_KEY_OF_RUN})
      and not (
        runs.state = 'pending'
        and revisions.policy ->> 'overlap' is distinct from 'allow'
        and exists (
          select from carillon.runs as held
          where held.schedule_id = runs.schedule_id
            and ${isOpen('held')}
            and held.state <> 'pending'
        )
      )
    order by runs.schedule_id, runs.scheduled_for
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ ...toSlotName(row), runAt: row.run_at?.getTime() ?? null }))
}

/** A slot by its name, if its run waits; for a job that could not be done here. Call with its schedule's row locked. */
export async function findWaitingSlot(
  tx: Tx,
  p: { scheduleId: string; scheduledFor: number },
): Promise<SlotName | undefined> {
  const { rows } = await sql<SlotRow>`
    select runs.schedule_id, runs.scheduled_for, revisions.target_kind
    from carillon.runs
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where runs.schedule_id = ${p.scheduleId}
      and runs.scheduled_for = ${new Date(p.scheduledFor)}
      and runs.state in ('pending', 'retrying')`.execute(tx)
  return rows.map(toSlotName)[0]
}

/** A run that is about to wait for its retry, and what has come in its way. */
export interface RetryFacts extends SlotName {
  /** Somebody asked to cancel it, or deleted its schedule. */
  readonly isUnwanted: boolean
  /** A later run of its schedule waits for its end. */
  readonly isOvertaken: boolean
}

/** What is to be known of the running runs of schedules before they wait. Call with the schedules' rows locked. */
export async function findRetryFacts(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<RetryFacts[]> {
  const { rows } = await sql<SlotRow & { is_unwanted: boolean; is_overtaken: boolean }>`
    select runs.schedule_id, runs.scheduled_for, revisions.target_kind,
      runs.cancel_requested_at is not null or schedules.state = 'deleted' as is_unwanted,
      exists (
        select from carillon.runs as waiting
        join carillon.schedule_revisions as theirs
          on theirs.schedule_id = waiting.schedule_id and theirs.revision = waiting.revision
        where waiting.schedule_id = runs.schedule_id
          and ${isOpen('waiting')}
          and waiting.state = 'pending'
          and theirs.policy ->> 'overlap' is distinct from 'allow'
      ) as is_overtaken
    from carillon.runs
    join carillon.schedules on schedules.id = runs.schedule_id
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.state = 'running'`.execute(tx)
  return rows.map((row) => ({ ...toSlotName(row), isUnwanted: row.is_unwanted, isOvertaken: row.is_overtaken }))
}

/**
 * Gives up the slots of schedules that wait for their turn: they are paused. A run-now stays, for it may run while its
 * schedule is paused. Call with the schedules' rows locked.
 * @returns whose jobs are no longer needed
 */
export async function skipWaitingSlots(
  tx: Tx,
  p: { scheduleIds: readonly string[]; now: Date | null },
): Promise<SlotName[]> {
  const { rows } = await sql<SlotRow>`
    with skipped as (
      update carillon.runs
      set state = 'skipped', reason = 'paused', completed_at = ${nowOf(p.now)}
      where runs.schedule_id = any(${p.scheduleIds}::uuid[])
        and ${isOpen()}
        and runs.state = 'pending'
        and runs.trigger = 'schedule'
      returning runs.schedule_id, runs.scheduled_for, runs.revision
    )
    select skipped.schedule_id, skipped.scheduled_for, revisions.target_kind
    from skipped
    join carillon.schedule_revisions as revisions
      on revisions.schedule_id = skipped.schedule_id and revisions.revision = skipped.revision`.execute(tx)
  return rows.map(toSlotName)
}

/** Asks that runs be cancelled, on whichever worker they are. Call with their schedules' rows locked. */
export async function requestCancel(
  tx: Tx,
  p: { runIds: readonly string[]; actor: string; now: Date | null },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    update carillon.runs
    set cancel_requested_at = ${nowOf(p.now)}, cancel_requested_by_subject = ${p.actor}
    where runs.id = any(${p.runIds}::uuid[]) and runs.state = 'running' and runs.cancel_requested_at is null
    returning runs.id`.execute(tx)
  return rows.map(({ id }) => id)
}

/** The runs a worker holds that somebody asked to cancel; the poll behind the notification. */
export async function findCancelRequests(db: Db, p: { workerId: string }): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select runs.id
    from carillon.runs
    where ${isOpen()}
      and runs.worker_id = ${p.workerId}
      and runs.cancel_requested_at is not null`.execute(db)
  return rows.map(({ id }) => id)
}

function toSlotName(row: SlotRow): SlotName {
  return { scheduleId: row.schedule_id, scheduledFor: row.scheduled_for.getTime(), targetKind: row.target_kind }
}
