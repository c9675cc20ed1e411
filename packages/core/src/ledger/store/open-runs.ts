import type { RunReason } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { stampOf } from '../../db/now.ts'

/** A waiting run that was ended. */
export interface EndedRun {
  readonly scheduleId: string
  /** Whether an attempt was made; if not, it never ran and is not counted. */
  readonly isTried: boolean
}

/**
 * Ends runs that wait. Superseded by the next slot, a run that was never tried is skipped, and one that was tried has failed;
 * cancelled, it is cancelled. Call with their schedules' rows locked, and take what never ran off their counts.
 */
export async function endWaitingRuns(
  tx: Tx,
  p: { runIds: readonly string[]; end: 'superseded' | 'cancelled'; now: Date | null },
): Promise<EndedRun[]> {
  const isCancelled = p.end === 'cancelled'
  const reason: RunReason | null = p.end === 'superseded' ? 'superseded' : null
  const { rows } = await sql<{ schedule_id: string; attempt_count: number }>`
    update carillon.runs
    set state = case
        when ${isCancelled} then 'cancelled'
        when runs.attempt_count = 0 then 'skipped'
        else 'failed'
      end::carillon.run_state,
      reason = ${reason}::carillon.run_reason,
      due_at = null, waits_for = null, lane = null,
      completed_at = ${stampOf(p.now)}
    where runs.id = any(${p.runIds}::uuid[]) and runs.due_at is not null
    returning runs.schedule_id, runs.attempt_count`.execute(tx)
  return rows.map(({ schedule_id, attempt_count }) => ({ scheduleId: schedule_id, isTried: attempt_count > 0 }))
}

/**
 * Gives up the slots of schedules that wait for their turn: they are paused. A run-now stays, for it may run while its
 * schedule is paused, and so does whatever waits for something else: it has begun. They come off `run_count`, for they never
 * ran. Call with the schedules' rows locked.
 */
export async function skipWaitingSlots(tx: Tx, p: { scheduleIds: readonly string[]; now: Date | null }): Promise<void> {
  await sql`
    with skipped as (
      update carillon.runs
      set state = 'skipped', reason = 'paused', due_at = null, waits_for = null, lane = null,
        completed_at = ${stampOf(p.now)}
      where runs.schedule_id = any(${p.scheduleIds}::uuid[])
        and ${isOpen()}
        and runs.waits_for = 'turn'
        and runs.trigger = 'schedule'
      returning runs.schedule_id
    )
    update carillon.schedules
    set run_count = schedules.run_count - given_up.runs
    from (select skipped.schedule_id, count(*) as runs from skipped group by skipped.schedule_id) as given_up
    where schedules.id = given_up.schedule_id`.execute(tx)
}

/**
 * Runs of schedules that wait for their turn may be taken from now on, unless another run of the schedule is still held or
 * waits for something else. Call with the schedules' rows locked.
 * @param p.isAllowed the schedules allow several runs at a time: whatever is held, all may be taken
 * @returns the lanes in which they wait
 */
export async function freeWaitingRuns(
  tx: Tx,
  p: { scheduleIds: readonly string[]; isAllowed?: boolean; now: Date | null },
): Promise<string[]> {
  const { rows } = await sql<{ lane: string }>`
    update carillon.runs
    set due_at = date_trunc('milliseconds', ${stampOf(p.now)}), waits_for = 'worker'
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.waits_for = 'turn'
      and (${p.isAllowed ?? false} or not exists (
        select
        from carillon.runs as other
        where other.schedule_id = runs.schedule_id
          -- Should Postgres rather read them all at once, then these and no others.
          and other.schedule_id = any(${p.scheduleIds}::uuid[])
          and ${isOpen('other')}
          and other.waits_for is distinct from 'turn'
      ))
    returning runs.lane`.execute(tx)
  return rows.map(({ lane }) => lane)
}

/** A run that is about to wait, and what has come in its way. */
export interface WaitFacts {
  readonly scheduleId: string
  readonly scheduledFor: number
  /** A caller asked to cancel it, or deleted its schedule. */
  readonly isUnwanted: boolean
  /** Another run of its schedule waits for its end. */
  readonly isOvertaken: boolean
}

/** What is to be known of the running runs of schedules before they wait. Call with the schedules' rows locked. */
export async function findWaitFacts(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<WaitFacts[]> {
  const { rows } = await sql<{
    schedule_id: string
    scheduled_for: Date
    is_unwanted: boolean
    is_overtaken: boolean
  }>`
    select runs.schedule_id, runs.scheduled_for,
      runs.cancel_requested_at is not null or schedules.state = 'deleted' as is_unwanted,
      exists (
        select
        from carillon.runs as waiting
        where waiting.schedule_id = runs.schedule_id and ${isOpen('waiting')} and waiting.waits_for = 'turn'
      ) as is_overtaken
    from carillon.runs
    join carillon.schedules on schedules.id = runs.schedule_id
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.state = 'running'`.execute(tx)
  return rows.map((row) => ({
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    isUnwanted: row.is_unwanted,
    isOvertaken: row.is_overtaken,
  }))
}

/**
 * Has the open runs of a schedule settled under its lock from now on: its overlap policy changed, so the end of one may have to
 * start another, which the worker that holds it does not know. Call with the schedule's row locked.
 */
export async function settleLocked(tx: Tx, p: { scheduleId: string }): Promise<void> {
  await sql`
    update carillon.runs
    set settles_locked = true
    where runs.schedule_id = ${p.scheduleId} and ${isOpen()} and not runs.settles_locked`.execute(tx)
}

/** Asks that runs be cancelled, on whichever worker they are. Call with their schedules' rows locked. */
export async function requestCancel(
  tx: Tx,
  p: { runIds: readonly string[]; actor: string; now: Date | null },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    update carillon.runs
    set cancel_requested_at = ${stampOf(p.now)}, cancel_requested_by_subject = ${p.actor}
    where runs.id = any(${p.runIds}::uuid[]) and runs.state = 'running' and runs.cancel_requested_at is null
    returning runs.id`.execute(tx)
  return rows.map(({ id }) => id)
}

/** The runs of a worker that are to be cancelled. Polled, because a notification can be lost. Serves `runs_cancel_idx`. */
export async function findCancelRequests(db: Db, p: { workerId: string }): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select runs.id
    from carillon.runs
    where ${isOpen()}
      and runs.worker_id = ${p.workerId}
      and runs.cancel_requested_at is not null`.execute(db)
  return rows.map(({ id }) => id)
}
