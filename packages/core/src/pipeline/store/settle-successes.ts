import { columns, instant, text } from '../../db/columns.ts'
import type { Queryable } from '../../db/database.ts'
import { stampOf } from '../../db/now.ts'
import { plainArray } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'
import type { Settlement } from './settle.ts'

export interface SettledSuccesses {
  readonly settledAt: number
  /** Indexes of settlements that changed nothing: their fence no longer holds, they need the lock of their schedule, or the run was completed. */
  readonly left: ReadonlySet<number>
}

/**
 * I4: what `settleRuns` writes, for attempts of one worker that succeeded and need no lock. Nothing is counted, paused or retried,
 * so the statement returns no row per run. At most one settlement per schedule. `now` is null in production: Postgres' clock decides.
 *
 * The batch is never joined with a table. Postgres does not know how many rows the batch has, and if its statistics come from a
 * ledger with few open runs, it chooses a nested loop over a thousand rows. A list in a filter is always hashed:
 * tests/pipeline/batch-plans.test.ts.
 *
 * The lock order is schedules before runs, as everywhere. `count(*) >= 0` is always true: it makes Postgres lock the schedules
 * of `failures_reset` before it updates runs: tests/pipeline/lock-order.test.ts.
 */
export async function settleSuccesses(
  db: Queryable,
  p: { settlements: readonly Settlement[]; workerId: string; now: Date | null },
): Promise<SettledSuccesses> {
  const { settlements } = p
  const scheduleIds = plainArray(settlements.map(({ run }) => run.scheduleId))
  const answer = columns('settled', {
    settledAt: instant.as(sql`(select at from stamp)`),
    settled: text.list.orNull.as(sql`
      case when (select count(*) from settled) < ${settlements.length}
        then array(select schedule_id::text from settled)
      end`),
  })
  const [row] = await sql`
    with stamp as materialized (
      select ${stampOf(p.now)} as at
    ), failures_reset as materialized (
      select schedules.id
      from schedules
      where schedules.id = any(${scheduleIds}::uuid[]) and schedules.consecutive_failures > 0
      order by schedules.id
      for no key update
    ), settled as (
      update runs
      set state = 'succeeded', worker_id = null, completed_at = (select at from stamp), error = null
      -- Uses the index of open runs.
      where runs.schedule_id = any(${scheduleIds}::uuid[])
        and runs.completed_at is null
        and runs.state = 'running'
        and runs.worker_id = ${p.workerId}::uuid
        and not runs.settles_locked
        and runs.completion is null
        -- Inside coalesce it stays a hashed list; without it Postgres would plan a join.
        and coalesce((runs.schedule_id, runs.scheduled_for, runs.token) in (
          select settlement.schedule_id, to_timestamp(settlement.slot / 1000.0), settlement.token
          from unnest(
            ${scheduleIds}::uuid[],
            ${plainArray(settlements.map(({ run }) => run.scheduledFor))}::double precision[],
            ${plainArray(settlements.map(({ run }) => run.token))}::integer[]
          ) as settlement(schedule_id, slot, token)
        ), false)
        -- Always true; locks schedules before runs.
        and (select count(*) from failures_reset) >= 0
      returning runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id, runs.attempt_count, runs.started_at
    ), attempted as (
      insert into attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, result
      )
      select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, ${p.workerId}::uuid, 'succeeded', started_at,
        (select at from stamp), (${resultsOf(settlements)}::jsonb ->> schedule_id::text)::json
      from settled
    ), counted as (
      update schedules
      set consecutive_failures = 0
      where exists (select from failures_reset)
        and schedules.id = any(array(select schedule_id from settled)) and schedules.consecutive_failures > 0
    )
    select ${answer}`.execute(db)
  if (row === undefined) throw new Error('expected one row that says what was settled, got none')
  return { settledAt: row.settledAt, left: leftOf(settlements, row.settled) }
}

/** A JSON object of results by schedule, each as JSON text so that it is stored byte for byte. Null if no attempt has a result. */
function resultsOf(settlements: readonly Settlement[]): string | null {
  const results = settlements.flatMap(({ run, result }) => (result === null ? [] : [[run.scheduleId, result] as const]))
  return results.length === 0 ? null : JSON.stringify(Object.fromEntries(results))
}

/** @param settled the schedules that were settled; null: all of them */
function leftOf(settlements: readonly Settlement[], settled: readonly string[] | null): ReadonlySet<number> {
  if (settled === null) return new Set()
  const written = new Set(settled)
  return new Set(settlements.flatMap(({ run }, index) => (written.has(run.scheduleId) ? [] : [index])))
}
