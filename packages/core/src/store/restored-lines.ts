import { sql } from 'kysely'

import type { RunState } from '../policy/run-state.ts'
import type { Tx } from './database.ts'
import { stampOf } from './now.ts'

/** A slot that came due and has no line. */
export interface LostLine {
  /** Of its run. */
  readonly id: string
  readonly scheduleId: string
  readonly scheduledFor: number
  /** The revision that awaited it. */
  readonly revision: number
}

/**
 * Gives slots the line that they should have (I6). A slot with attempts ran, so its line says what the last of them came to. Of any
 * other slot nobody knows whether it ran: it is `skipped: missed`, and is not run (I2, I11). A line that is there stays. Call with
 * the schedules' rows locked.
 * @returns by id the state of each line that was written
 */
export async function restoreLines(
  tx: Tx,
  p: { lines: readonly LostLine[]; now: Date | null },
): Promise<ReadonlyMap<string, RunState>> {
  const { lines } = p
  const { rows } = await sql<{ id: string; state: RunState }>`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, attempt_count, token, begun_at,
      started_at, completed_at, error
    )
    select lost.schedule_id, lost.scheduled_for, lost.id, schedules.tenant_id, schedules.project_id, lost.revision, 'schedule',
      case
        when last.attempt is null then 'skipped'
        when last.outcome in ('succeeded', 'cancelled') then last.outcome::text
        else 'failed'
      end::carillon.run_state,
      case when last.attempt is null then 'missed' end::carillon.run_reason,
      coalesce(last.attempt, 0), coalesce(last.attempt, 0), coalesce(last.started_at, stamp.at), last.started_at,
      coalesce(last.completed_at, stamp.at), last.error
    from unnest(
      ${lines.map(({ scheduleId }) => scheduleId)}::uuid[],
      ${lines.map(({ scheduledFor }) => new Date(scheduledFor).toISOString())}::timestamptz[],
      ${lines.map(({ id }) => id)}::uuid[],
      ${lines.map(({ revision }) => revision)}::integer[]
    ) as lost(schedule_id, scheduled_for, id, revision)
    join carillon.schedules on schedules.id = lost.schedule_id
    cross join stamp
    left join lateral (
      select attempts.attempt, attempts.outcome, attempts.started_at, attempts.completed_at, attempts.error
      from carillon.attempts
      where attempts.schedule_id = lost.schedule_id and attempts.scheduled_for = lost.scheduled_for
      order by attempts.attempt desc
      limit 1
    ) as last on true
    on conflict do nothing
    returning runs.id, runs.state`.execute(tx)
  return new Map(rows.map(({ id, state }) => [id, state]))
}
