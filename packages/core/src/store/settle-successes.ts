import { sql } from 'kysely'

import { plainArray } from './array-text.ts'
import type { Db } from './database.ts'
import { stampOf } from './now.ts'

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
  /**
   * Which of them changed nothing, by their place in the batch: their fence no longer held, or they are to be settled under
   * the lock of their schedule.
   */
  readonly left: ReadonlySet<number>
}

/**
 * I4: what `settleRuns` writes, for the many attempts of one worker that simply succeeded: nothing is counted, paused or tried
 * again, and what was written is known without being told. At most one per schedule.
 *
 * Nothing is joined with the batch. Of how many rows it has Postgres knows nothing; once it had looked at a ledger of which few
 * runs are open, it compared each of a thousand with each. What a filter looks up in a list it always hashes.
 */
export async function settleSuccesses(
  db: Db,
  p: { successes: readonly Success[]; workerId: string; now: Date | null },
): Promise<SettledSuccesses> {
  const { successes } = p
  const scheduleIds = plainArray(successes.map(({ scheduleId }) => scheduleId))
  const { rows } = await sql<{ settled_at: Date; settled: string[] | null }>`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), forgiven as materialized (
      select schedules.id
      from carillon.schedules
      where schedules.id = any(${scheduleIds}::uuid[]) and schedules.consecutive_failures > 0
      order by schedules.id
      for no key update
    ), settled as (
      update carillon.runs
      set state = 'succeeded', worker_id = null, completed_at = (select at from stamp), error = null
      -- By index, however many runs others have open.
      where runs.schedule_id = any(${scheduleIds}::uuid[])
        and runs.completed_at is null
        and runs.state = 'running'
        and runs.worker_id = ${p.workerId}::uuid
        and not runs.settles_locked
        -- Within another expression it stays a list to look up in; alone it would become a join.
        and coalesce((runs.schedule_id, runs.scheduled_for, runs.token) in (
          select settlement.schedule_id, to_timestamp(settlement.slot / 1000.0), settlement.token
          from unnest(
            ${scheduleIds}::uuid[],
            ${plainArray(successes.map(({ scheduledFor }) => scheduledFor))}::double precision[],
            ${plainArray(successes.map(({ token }) => token))}::integer[]
          ) as settlement(schedule_id, slot, token)
        ), false)
        -- Schedules before runs, as everywhere: those whose failures are to be forgiven are locked first.
        and (select count(*) from forgiven) >= 0
      returning runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id, runs.attempt_count, runs.started_at
    ), attempted as (
      insert into carillon.attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, result
      )
      select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, ${p.workerId}::uuid, 'succeeded', started_at,
        (select at from stamp), (${resultsOf(successes)}::jsonb ->> schedule_id::text)::json
      from settled
    ), counted as (
      update carillon.schedules
      set consecutive_failures = 0
      where exists (select from forgiven)
        and schedules.id = any(array(select schedule_id from settled)) and schedules.consecutive_failures > 0
    )
    select (select at from stamp) as settled_at,
      case when (select count(*) from settled) < ${successes.length}
        then array(select schedule_id::text from settled)
      end as settled`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres told nothing of what was settled')
  return { settledAt: row.settled_at.getTime(), left: leftOf(successes, row.settled) }
}

/** The results by schedule, each as a text within JSON: it is kept as it was written. Null if there is none. */
function resultsOf(successes: readonly Success[]): string | null {
  const results = successes.flatMap(({ scheduleId, result }) =>
    result === null ? [] : [[scheduleId, result] as const],
  )
  return results.length === 0 ? null : JSON.stringify(Object.fromEntries(results))
}

/** @param settled those that were, if not all were */
function leftOf(successes: readonly Success[], settled: readonly string[] | null): ReadonlySet<number> {
  if (settled === null) return new Set()
  const written = new Set(settled)
  return new Set(successes.flatMap(({ scheduleId }, place) => (written.has(scheduleId) ? [] : [place])))
}
