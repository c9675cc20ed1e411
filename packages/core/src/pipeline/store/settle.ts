import {
  RUN_STATES,
  SYSTEM_SUBJECT,
  type AttemptOutcome,
  type RetryPolicy,
  type RunState,
  type RunWait,
} from '@carillon/api'

import { boolean, columns, instant, smallint, text, uuid, word } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { stampOf } from '../../db/now.ts'
import { instantText } from '../../db/parameters.ts'
import { RUN_REASON } from '../../db/shared-columns.ts'
import { literal, sql } from '../../db/sql.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import type { EndingKind, ScheduleEffect } from '../../ports/target.ts'

/** The result of an attempt that is to be written, with the fence that proves whose attempt it was (I12). */
export interface Settlement {
  readonly run: RunFence
  readonly ending: EndingKind
  /** Who held the run until now: its worker, or the called side. One fence never passes for the other. */
  readonly held: 'running' | 'detached'
  /** `skipped`: refused and never tried. `pending` (never tried) or `retrying` (tried before): the run waits. */
  readonly state: Exclude<RunState, 'running'>
  readonly reason: string | null
  /** Null if no attempt was made (handed back, refused, deferred), or if it goes on elsewhere: it leaves no attempt row. */
  readonly outcome: AttemptOutcome | null
  /** Null unless the run waits. */
  readonly waitsFor: Extract<RunWait, 'worker' | 'retry' | 'deferred' | 'completion'> | null
  /** How long after the settlement the pipeline acts on the run again; null unless it waits that long. */
  readonly dueInMs: number | null
  /** The instant from which it acts on the run again, for a run that was deferred. At most a day ahead. */
  readonly dueAt: number | null
  /** JSON text. */
  readonly error: string | null
  /** JSON text. */
  readonly result: string | null
  /** What the target calls the work that it passed on. */
  readonly reference: string | null
  /** The policy by which the run is tried again, should a completion decide otherwise. */
  readonly retry: RetryPolicy
  /** True if another run of the schedule may wait for this one to end. */
  readonly mayFree: boolean
  /** Whether it counts toward auto-pause if it did not succeed. */
  readonly isFailure: boolean
  /** What `admit` asked to do to the schedule besides. */
  readonly effect: ScheduleEffect | null
  /** The completion by which it is settled, as JSON text; null if the run was not completed. */
  readonly completion: string | null
  /** Who completed it. */
  readonly completedBy: string | null
  /** What `dispatch` returned for the hook `settled`. */
  readonly private: unknown
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
  readonly reason: string | null
  readonly startedAt: number
  readonly settledAt: number
  /** When the pipeline acts on the run again, and the lane that it waits in; null if it is over. */
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
  state: word('run_state', RUN_STATES).only([
    'pending',
    'retrying',
    'detached',
    'succeeded',
    'failed',
    'cancelled',
    'skipped',
  ]),
  reason: RUN_REASON.orNull,
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
  const scheduleIds = settlements.map(({ run }) => run.scheduleId)
  const rows = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), settlement as materialized (
      select *
      from unnest(
        ${scheduleIds}::uuid[],
        ${settlements.map(({ run }) => instantText(run.scheduledFor))}::timestamptz[],
        ${settlements.map(({ run }) => run.workerId)}::uuid[],
        ${settlements.map(({ run }) => run.token)}::integer[],
        ${settlements.map((s) => s.held)}::run_state[],
        ${settlements.map((s) => s.state)}::run_state[],
        ${settlements.map((s) => s.reason)}::run_reason[],
        ${settlements.map((s) => s.outcome)}::attempt_outcome[],
        ${settlements.map((s) => s.waitsFor)}::run_wait[],
        ${settlements.map((s) => s.dueInMs)}::double precision[],
        ${settlements.map((s) => instantText(s.dueAt))}::timestamptz[],
        ${settlements.map(({ run }) => run.targetKind)}::text[],
        ${settlements.map((s) => s.error)}::text[],
        ${settlements.map((s) => s.result)}::text[],
        ${settlements.map((s) => s.reference)}::text[],
        ${settlements.map((s) => s.isFailure)}::boolean[],
        ${settlements.map((s) => s.completion)}::text[],
        ${settlements.map((s) => s.completedBy)}::text[]
      ) as s(
        schedule_id, scheduled_for, worker_id, token, held, state, reason, outcome, waits_for, due_in_ms, deferred_until, target_kind,
        error, result, reference, is_failure, completion, completed_by
      )
    ), settled as (
      update runs
      set state = settlement.state,
        reason = settlement.reason,
        attempt_count = runs.attempt_count
          - case when settlement.outcome is null and settlement.state <> 'detached' then 1 else 0 end,
        worker_id = case when settlement.state = 'detached' then runs.worker_id end,
        -- A run that was never tried has not started.
        started_at = case when settlement.state not in ('skipped', 'pending') then runs.started_at end,
        waits_for = settlement.waits_for,
        due_at = case
          -- A completion or a cancellation that came before the target's answer is acted on at once.
          when settlement.state = 'detached' and (runs.completion is not null or runs.cancel_requested_at is not null)
            then date_trunc('milliseconds', (select at from stamp))
          when settlement.waits_for = 'deferred' then date_trunc('milliseconds', greatest(
            (select at from stamp), least(settlement.deferred_until, (select at from stamp) + interval '1 day')
          ))
          else date_trunc('milliseconds', (select at from stamp)) + settlement.due_in_ms * interval '1 millisecond'
        end,
        lane = case
          when settlement.waits_for = 'completion' then replace(lane_of(settlement.target_kind, runs.tenant_id), '.', '~')
          when settlement.waits_for is not null then lane_of(settlement.target_kind, runs.tenant_id)
        end,
        completion = case when settlement.state = 'detached' then runs.completion end,
        heartbeat_at = null,
        reference = coalesce(settlement.reference, runs.reference),
        completed_at = case when settlement.waits_for is null then (select at from stamp) end,
        error = settlement.error::json
      from settlement
      -- Uses the index of open runs.
      where runs.schedule_id = any(${scheduleIds}::uuid[])
        and runs.schedule_id = settlement.schedule_id
        and runs.scheduled_for = settlement.scheduled_for
        and ${isOpen()}
        and runs.state = settlement.held
        and runs.worker_id = settlement.worker_id
        and runs.token = settlement.token
        -- A completion that was taken decides: a settlement by another ending leaves the run alone, and reads the completion.
        and (settlement.state = 'detached' or runs.completion::text is not distinct from settlement.completion)
      returning runs.schedule_id, runs.scheduled_for, runs.id, runs.tenant_id, runs.project_id, runs.attempt_count,
        runs.state, runs.reason, runs.started_at, runs.due_at, runs.lane, settlement.worker_id, settlement.outcome, settlement.error,
        settlement.result, settlement.is_failure, settlement.completed_by
    ), attempted as (
      insert into attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, error, result,
        completed_by
      )
      select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, worker_id, outcome, started_at,
        (select at from stamp), error::json, result::json, completed_by
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
        select settled.is_failure and settled.state in ('failed', 'skipped') as is_one, settled.due_at is null and settled.attempt_count = 0 as is_untried
      ) as failure
      cross join lateral (
        select failure.is_one and before.state = 'active' and before.auto_pause_threshold > 0
          and before.consecutive_failures + 1 >= before.auto_pause_threshold
          and before.due_at > (select at from stamp) as is_due
      ) as pause
      where schedules.id = settled.schedule_id
        and (
          failure.is_one or failure.is_untried or settled.state = 'failed'
          or (settled.state = 'succeeded' and schedules.consecutive_failures > 0)
        )
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
