import {
  RUN_REASONS,
  RUN_STATES,
  SYSTEM_SUBJECT,
  type AttemptOutcome,
  type RunReason,
  type RunState,
  type RunWait,
} from '@carillon/api'

import { boolean, columns, instant, smallint, text, uuid, word } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { stampOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { literal, sql } from '../../db/sql.ts'

/** The result of an attempt that is to be written, with the fence that proves whose attempt it was (I12). */
export interface Settlement {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly workerId: string
  readonly token: number
  readonly targetKind: string
  /** `skipped`: refused and never tried. `pending` (never tried) or `retrying` (tried before): the run waits. */
  readonly state: Exclude<RunState, 'running'>
  readonly reason: RunReason | null
  /** Null if no attempt was made (handed back, refused): it leaves no attempt row and is not counted. */
  readonly outcome: AttemptOutcome | null
  /** Null unless the run waits. */
  readonly waitsFor: Extract<RunWait, 'worker' | 'retry'> | null
  /** How long after the settlement a worker may take the run again; null unless the run waits. */
  readonly dueInMs: number | null
  /** JSON text. */
  readonly error: string | null
  /** JSON text. */
  readonly result: string | null
  /** True if another run of the schedule may wait for this one to end. */
  readonly mayFree: boolean
}

/** A run as its settlement left it. */
export interface SettledRun {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly runId: string
  readonly tenantId: string
  readonly projectId: string
  readonly targetKind: string
  readonly attempt: number
  readonly state: Settlement['state']
  readonly reason: RunReason | null
  readonly startedAt: number
  readonly settledAt: number
  /** When the run is tried again, and the lane that it waits in; null if it is over. */
  readonly dueAt: number | null
  readonly lane: string | null
  readonly isAutoPaused: boolean
}

const SETTLED_COLUMNS = columns('settled', {
  scheduleId: uuid,
  scheduledFor: instant,
  runId: uuid.as(sql`settled.id`),
  tenantId: text,
  projectId: text,
  targetKind: text.as(sql`schedules.target_kind`),
  attempt: smallint.as(sql`settled.attempt_count`),
  // No settlement leaves a run running.
  state: word('run_state', RUN_STATES).only(['pending', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped']),
  reason: word('run_reason', RUN_REASONS).orNull,
  startedAt: instant.orNull,
  settledAt: instant.as(sql`(select at from stamp)`),
  dueAt: instant.orNull,
  lane: text.orNull,
  isAutoPaused: boolean.as(sql`settled.schedule_id = any(array(select id from counted where is_due))`),
})

/**
 * I4: writes attempts, runs, counters and auto-pause of a whole batch in one statement. A settlement whose fence no longer holds
 * changes nothing and is missing from the answer (I12).
 *
 * A batch holds at most one settlement per schedule. An earlier statement of the transaction must have locked the schedules:
 * `before` then shows their current values, and the lock order is schedules before runs, as everywhere.
 *
 * A schedule that is due now is not paused here. The next BEGIN sees its failures, writes the lines of its due slots and pauses it
 * (I6). The time at this statement (`stamp`) decides what is due, not the start of the transaction: a slot may come due while the
 * transaction waits for the schedule's lock. `now` is null in production: Postgres' clock decides.
 */
export async function settleRuns(
  tx: Tx,
  p: { settlements: readonly Settlement[]; autoPauseReason: string; onConflict: 'refuse' | 'keep'; now: Date | null },
): Promise<SettledRun[]> {
  const { settlements } = p
  const scheduleIds = settlements.map((s) => s.scheduleId)
  const rows = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), settlement as materialized (
      select *
      from unnest(
        ${scheduleIds}::uuid[],
        ${settlements.map((s) => instantText(s.scheduledFor))}::timestamptz[],
        ${settlements.map((s) => s.workerId)}::uuid[],
        ${settlements.map((s) => s.token)}::integer[],
        ${settlements.map((s) => s.state)}::run_state[],
        ${settlements.map((s) => s.reason)}::run_reason[],
        ${settlements.map((s) => s.outcome)}::attempt_outcome[],
        ${settlements.map((s) => s.waitsFor)}::run_wait[],
        ${settlements.map((s) => s.dueInMs)}::double precision[],
        ${settlements.map((s) => s.targetKind)}::text[],
        ${settlements.map((s) => s.error)}::text[],
        ${settlements.map((s) => s.result)}::text[]
      ) as s(
        schedule_id, scheduled_for, worker_id, token, state, reason, outcome, waits_for, due_in_ms, target_kind, error, result
      )
    ), settled as (
      update runs
      set state = settlement.state,
        reason = settlement.reason,
        attempt_count = runs.attempt_count - case when settlement.outcome is null then 1 else 0 end,
        worker_id = null,
        -- A run that was never tried has not started.
        started_at = case when settlement.state not in ('skipped', 'pending') then runs.started_at end,
        waits_for = settlement.waits_for,
        due_at = date_trunc('milliseconds', (select at from stamp)) + settlement.due_in_ms * interval '1 millisecond',
        lane = case when settlement.waits_for is not null then lane_of(settlement.target_kind, runs.tenant_id) end,
        completed_at = case when settlement.waits_for is null then (select at from stamp) end,
        error = settlement.error::json
      from settlement
      -- Uses the index of open runs.
      where runs.schedule_id = any(${scheduleIds}::uuid[])
        and runs.schedule_id = settlement.schedule_id
        and runs.scheduled_for = settlement.scheduled_for
        and ${isOpen()}
        and runs.state = 'running'
        and runs.worker_id = settlement.worker_id
        and runs.token = settlement.token
      returning runs.schedule_id, runs.scheduled_for, runs.id, runs.tenant_id, runs.project_id, runs.attempt_count,
        runs.state, runs.reason, runs.started_at, runs.due_at, runs.lane, settlement.worker_id, settlement.outcome, settlement.error,
        settlement.result
    ), attempted as (
      insert into attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, error, result
      )
      select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, worker_id, outcome, started_at,
        (select at from stamp), error::json, result::json
      from settled
      where outcome is not null
      ${p.onConflict === 'keep' ? sql`on conflict do nothing` : sql``}
    ), counted as (
      update schedules
      set consecutive_failures = case
          when failure.is_one then schedules.consecutive_failures + 1
          when settled.state = 'succeeded' then 0
          else schedules.consecutive_failures
        end,
        failure_count = schedules.failure_count + case settled.state when 'failed' then 1 else 0 end,
        run_count = schedules.run_count - case when failure.is_untried then 1 else 0 end,
        state = case when pause.is_due then 'paused' else schedules.state end,
        next_slot_at = case when pause.is_due then null else schedules.next_slot_at end,
        due_at = case when pause.is_due then null else schedules.due_at end,
        paused_at = case when pause.is_due then (select at from stamp) else schedules.paused_at end,
        paused_reason = case when pause.is_due then ${p.autoPauseReason} else schedules.paused_reason end,
        paused_by_subject = case when pause.is_due then ${literal(SYSTEM_SUBJECT)} else schedules.paused_by_subject end
      from settled
      join schedules as before on before.id = settled.schedule_id
      cross join lateral (
        select settled.state in ('failed', 'skipped') as is_one, settled.due_at is null and settled.attempt_count = 0 as is_untried
      ) as failure
      cross join lateral (
        select failure.is_one and before.state = 'active' and before.auto_pause_threshold > 0
          and before.consecutive_failures + 1 >= before.auto_pause_threshold
          and before.due_at > (select at from stamp) as is_due
      ) as pause
      where schedules.id = settled.schedule_id
        and (failure.is_one or failure.is_untried or (settled.state = 'succeeded' and schedules.consecutive_failures > 0))
      returning schedules.id, schedules.tenant_id, schedules.project_id, schedules.revision, pause.is_due
    ), changed as (
      insert into schedule_changes (
        schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
      )
      select id, tenant_id, project_id, 'paused', revision, null, ${literal(SYSTEM_SUBJECT)}, ${p.autoPauseReason},
        (select at from stamp)
      from counted
      where is_due
    )
    select ${SETTLED_COLUMNS}
    from settled
    join schedules on schedules.id = settled.schedule_id`.execute(tx)
  return rows.map((row) => ({ ...row, startedAt: row.startedAt ?? row.settledAt }))
}
