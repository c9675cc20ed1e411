import { RUN_STATES, type RunReason } from '@carillon/api'

import { boolean, columns, instant, integer, text, uuid, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { stampOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'

/* In every function, `now` is null in production: Postgres' own clock decides (I10). A test passes an instant. */

/** A waiting run that was ended. */
export interface EndedRun {
  readonly scheduleId: string
  /** True if an attempt was made. A run without attempts never ran and is not counted. */
  readonly isTried: boolean
}

const ENDED_COLUMNS = columns('runs', { scheduleId: uuid, isTried: boolean.as(sql`runs.attempt_count > 0`) })
const ID_COLUMN = columns('runs', { id: uuid })

/**
 * Ends waiting runs. If the next slot supersedes them, a run that was never tried becomes skipped, and a run that was tried becomes
 * failed. If they are cancelled, all become cancelled. Call with the schedules' rows locked, and subtract the runs that were never
 * tried from `run_count`. A detached run is not ended here: its cancellation is requested instead.
 */
export async function endWaitingRuns(
  tx: Tx,
  p: { runIds: readonly string[]; end: 'superseded' | 'cancelled'; now: Date | null },
): Promise<EndedRun[]> {
  const isCancelled = p.end === 'cancelled'
  const reason: RunReason | null = p.end === 'superseded' ? 'superseded' : null
  return sql`
    update runs
    set state = case
        when ${isCancelled} then 'cancelled'
        when runs.attempt_count = 0 then 'skipped'
        else 'failed'
      end::run_state,
      reason = ${reason}::run_reason,
      due_at = null, waits_for = null, lane = null,
      completed_at = ${stampOf(p.now)}
    where runs.id = any(${p.runIds}::uuid[]) and runs.due_at is not null and runs.state <> 'detached'
    returning ${ENDED_COLUMNS}`.execute(tx)
}

/**
 * Skips the slots of paused schedules that wait for their turn, and subtracts them from `run_count`, because they never ran. A manual
 * run stays, because it may run while its schedule is paused. A run that waits for anything else has had its turn and stays too. Call
 * with the schedules' rows locked.
 */
export async function skipWaitingSlots(tx: Tx, p: { scheduleIds: readonly string[]; now: Date | null }): Promise<void> {
  await sql`
    with skipped as (
      update runs
      set state = 'skipped', reason = 'paused', due_at = null, waits_for = null, lane = null,
        completed_at = ${stampOf(p.now)}
      where runs.schedule_id = any(${p.scheduleIds}::uuid[])
        and ${isOpen()}
        and runs.waits_for = 'turn'
        and runs.trigger = 'schedule'
      returning runs.schedule_id
    )
    update schedules
    set run_count = schedules.run_count - given_up.runs
    from (select skipped.schedule_id, count(*) as runs from skipped group by skipped.schedule_id) as given_up
    where schedules.id = given_up.schedule_id`.execute(tx)
}

const LANE_COLUMN = columns('runs', { lane: text.present })

/**
 * Lets workers take the runs of schedules that wait for their turn, except where a worker holds another run of the schedule, or another
 * run waits for something else. Call with the schedules' rows locked.
 * @param p.isAllowed true if the schedules allow several runs at a time: then there is no exception. @default false
 * @returns the lanes in which the runs wait
 */
export async function endTurnWait(
  tx: Tx,
  p: { scheduleIds: readonly string[]; isAllowed?: boolean; now: Date | null },
): Promise<string[]> {
  const rows = await sql`
    update runs
    set due_at = date_trunc('milliseconds', ${stampOf(p.now)}), waits_for = 'worker'
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.waits_for = 'turn'
      and (${p.isAllowed ?? false} or not exists (
        select
        from runs as other
        where other.schedule_id = runs.schedule_id
          -- Repeated for the case that Postgres reads the other runs at once: then it reads those of these schedules only.
          and other.schedule_id = any(${p.scheduleIds}::uuid[])
          and ${isOpen('other')}
          and other.waits_for is distinct from 'turn'
      ))
    returning ${LANE_COLUMN}`.execute(tx)
  return rows.map(({ lane }) => lane)
}

/** What decides how a run is settled, as it is under the lock of its schedule. */
export interface SettleFacts {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly state: 'running' | 'detached'
  readonly workerId: string
  readonly token: number
  /** What a completion said, as JSON text; null if the run was not completed. */
  readonly completion: string | null
  /** Of a detached run: its deadline has passed. */
  readonly isPastDeadline: boolean
  /** A caller asked to cancel it, or deleted its schedule. */
  readonly isUnwanted: boolean
  /** Another run of its schedule waits for this one to end. */
  readonly isAwaited: boolean
}

const FACT_COLUMNS = columns('runs', {
  scheduleId: uuid,
  scheduledFor: instant,
  state: word('run_state', RUN_STATES).only(['running', 'detached']),
  workerId: uuid.present,
  token: integer,
  completion: text.orNull.as(sql`runs.completion::text`),
  isUnwanted: boolean.as(sql`runs.cancel_requested_at is not null or schedules.state = 'deleted'`),
  isAwaited: boolean.as(sql`
      exists (
        select
        from runs as waiting
        where waiting.schedule_id = runs.schedule_id and ${isOpen('waiting')} and waiting.waits_for = 'turn'
      )`),
})

/**
 * The facts of all running and detached runs of some schedules. Call with the schedules' rows locked: then only a completion may still
 * come. `now` is null in production: Postgres' clock decides.
 */
export async function findSettleFacts(
  tx: Tx,
  p: { scheduleIds: readonly string[]; now: Date | null },
): Promise<SettleFacts[]> {
  const isPastDeadline = boolean.as(sql`coalesce(runs.due_at <= ${stampOf(p.now)}, false)`)
  return sql`
    select ${FACT_COLUMNS.with('runs', { isPastDeadline })}
    from runs
    join schedules on schedules.id = runs.schedule_id
    where runs.schedule_id = any(${p.scheduleIds}::uuid[])
      and ${isOpen()}
      and runs.state in ('running', 'detached')`.execute(tx)
}

/** Locks runs in the order of their ids, as code of modules that completes several runs does. Call with the schedules' rows locked. */
export async function lockRuns(
  tx: Tx,
  p: { scheduleIds: readonly string[]; runIds: readonly string[] },
): Promise<void> {
  await sql`
    select
    from runs
    where runs.schedule_id = any(${p.scheduleIds}::uuid[]) and ${isOpen()} and runs.id = any(${p.runIds}::uuid[])
    order by runs.id
    for no key update`.execute(tx)
}

/**
 * Makes workers settle the open runs of a schedule under its lock from now on. After a change of the overlap policy, the end of such a
 * run may have to start another one, and the worker that holds the run does not know that. Call with the schedule's row locked.
 */
export async function requireLockedSettlement(tx: Tx, p: { scheduleId: string }): Promise<void> {
  await sql`
    update runs
    set settles_locked = true
    where runs.schedule_id = ${p.scheduleId} and ${isOpen()} and not runs.settles_locked`.execute(tx)
}

const CANCELLED_COLUMNS = columns('runs', { id: uuid, lane: text.orNull })

/** A run whose cancellation was requested. */
export interface CancelRequested {
  readonly id: string
  /** The lane of a detached run, which the pipeline settles at once; null: a worker holds the run. */
  readonly lane: string | null
}

/**
 * Requests the cancellation of running runs, whichever workers hold them, and of detached runs. Returns those that had no such request
 * before. Call with the schedules' rows locked.
 */
export async function requestCancel(
  tx: Tx,
  p: { runIds: readonly string[]; actor: string; now: Date | null },
): Promise<CancelRequested[]> {
  return sql`
    update runs
    set cancel_requested_at = ${stampOf(p.now)}, cancel_requested_by_subject = ${p.actor},
      due_at = case when runs.state = 'detached' then date_trunc('milliseconds', ${stampOf(p.now)}) end
    where runs.id = any(${p.runIds}::uuid[]) and runs.state in ('running', 'detached') and runs.cancel_requested_at is null
    returning ${CANCELLED_COLUMNS}`.execute(tx)
}

/** The runs of a worker that are to be cancelled. Workers poll this, because a notification can be lost. Uses `runs_cancel_idx`. */
export async function findCancelRequests(db: Db, p: { workerId: string }): Promise<string[]> {
  const rows = await sql`
    select ${ID_COLUMN}
    from runs
    where ${isOpen()}
      and runs.state = 'running'
      and runs.worker_id = ${p.workerId}
      and runs.cancel_requested_at is not null`.execute(db)
  return rows.map(({ id }) => id)
}
