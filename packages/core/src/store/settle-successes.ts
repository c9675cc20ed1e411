import { sql } from 'kysely'

import { plainArray } from './array-text.ts'
import type { Db } from './database.ts'
import { nowOf } from './now.ts'

/** An attempt that succeeded, with the fence that proves whose it was (I12). */
export interface Success {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly token: number
  /** JSON text. */
  readonly result: string | null
}

export interface SettledSuccesses {
  readonly settledAt: number
  /** Which of them changed nothing, by their place in the batch: their fence no longer held. */
  readonly fenced: ReadonlySet<number>
}

/**
 * I4: what `settleRuns` writes, for the many attempts of one worker that simply succeeded: nothing is counted, paused or tried
 * again, and what was written is known without being told. At most one per schedule.
 */
export async function settleSuccesses(
  db: Db,
  p: { successes: readonly Success[]; workerId: string; now: Date | null },
): Promise<SettledSuccesses> {
  const { successes } = p
  const scheduleIds = plainArray(successes.map(({ scheduleId }) => scheduleId))
  const isSilent = successes.every(({ result }) => result === null)
  const { rows } = await sql<{ settled_at: Date; fenced: number[] | null }>`
    with settlement as materialized (
      select schedule_id, to_timestamp(slot / 1000.0) as scheduled_for, token, result, ordinal
      from unnest(
        ${scheduleIds}::uuid[],
        ${plainArray(successes.map(({ scheduledFor }) => scheduledFor))}::double precision[],
        ${plainArray(successes.map(({ token }) => token))}::integer[],
        ${isSilent ? null : successes.map(({ result }) => result)}::text[]
      ) with ordinality as s(schedule_id, slot, token, result, ordinal)
    ), forgiven as materialized (
      select schedules.id
      from carillon.schedules
      where schedules.id = any(${scheduleIds}::uuid[]) and schedules.consecutive_failures > 0
      order by schedules.id
      for no key update
    ), settled as (
      update carillon.runs
      set state = 'succeeded', worker_id = null, completed_at = ${nowOf(p.now)}, error = null
      from settlement
      -- By index, however many runs others have open.
      where runs.schedule_id = any(${scheduleIds}::uuid[])
        and runs.schedule_id = settlement.schedule_id
        and runs.scheduled_for = settlement.scheduled_for
        and runs.state = 'running'
        and runs.worker_id = ${p.workerId}::uuid
        and runs.token = settlement.token
        -- Schedules before runs, as everywhere: those whose failures are to be forgiven are locked first.
        and (select count(*) from forgiven) >= 0
      returning runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id, runs.attempt_count, runs.started_at,
        settlement.result, settlement.ordinal
    ), attempted as (
      insert into carillon.attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, result
      )
      select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, ${p.workerId}::uuid, 'succeeded', started_at,
        ${nowOf(p.now)}, result::json
      from settled
    ), counted as (
      update carillon.schedules
      set consecutive_failures = 0
      where exists (select from forgiven)
        and schedules.id = any(array(select schedule_id from settled)) and schedules.consecutive_failures > 0
    )
    select ${nowOf(p.now)} as settled_at, (
      select array_agg(settlement.ordinal::integer - 1)
      from settlement
      where not exists (select from settled where settled.ordinal = settlement.ordinal)
    ) as fenced`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres told nothing of what was settled')
  return { settledAt: row.settled_at.getTime(), fenced: new Set(row.fenced) }
}
