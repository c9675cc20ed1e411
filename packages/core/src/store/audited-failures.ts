import { sql } from 'kysely'

import type { Tx } from './database.ts'

/** The failures in a row of a schedule: what it says of itself, and what its ledger says. */
export interface AuditedFailures {
  readonly id: string
  readonly counted: number
  /** Runs that count as failures and ended since. */
  readonly ended: number
  /** When the schedule last succeeded or was resumed; null: never, as far as the ledger remembers. */
  readonly since: number | null
  /** The ledger does not tell in which order runs were counted, or whether one was. */
  readonly isUnclear: boolean
}

/**
 * Counts the failures in a row of schedules. Settle and begin count a run that failed after a try and a slot that was refused; a
 * success and a resume set the count to 0. Reads all lines of these schedules.
 */
export async function listAuditedFailures(tx: Tx, p: { ids: readonly string[] }): Promise<AuditedFailures[]> {
  const { rows } = await sql<{
    id: string
    counted: number
    ended: number
    since: Date | null
    is_unclear: boolean | null
  }>`
    with ended as materialized (
      select runs.schedule_id, runs.completed_at, runs.state, runs.reason
      from carillon.runs
      where runs.schedule_id = any(${p.ids}::uuid[]) and runs.completed_at is not null
        and (
          runs.state = 'succeeded'
          or (runs.state = 'failed' and runs.attempt_count > 0)
          or (runs.state = 'skipped' and runs.reason in ('grant_expired', 'grant_revoked', 'grant_scope', 'access_lost', 'superseded'))
        )
    ), forgiven as materialized (
      select ended.schedule_id, max(ended.completed_at) as at
      from ended
      where ended.state = 'succeeded'
      group by ended.schedule_id
    ), failed as materialized (
      select schedules.id, count(*)::integer as runs,
        -- Two runs that end within seconds of each other may have been counted in either order: a settlement waits up to five for a lock.
        bool_or(ended.reason = 'superseded' and ended.state = 'skipped' or ended.completed_at < base.at + interval '10 seconds') as is_unclear
      from carillon.schedules
      left join forgiven on forgiven.schedule_id = schedules.id
      cross join lateral (select greatest(forgiven.at, schedules.resumed_at) as at) as base
      join ended on ended.schedule_id = schedules.id and ended.state <> 'succeeded'
        and (base.at is null or ended.completed_at > base.at - interval '10 seconds')
      where schedules.id = any(${p.ids}::uuid[])
      group by schedules.id
    )
    select schedules.id, schedules.consecutive_failures as counted, coalesce(failed.runs, 0) as ended,
      greatest(forgiven.at, schedules.resumed_at) as since, failed.is_unclear
    from carillon.schedules
    left join forgiven on forgiven.schedule_id = schedules.id
    left join failed on failed.id = schedules.id
    where schedules.id = any(${p.ids}::uuid[])`.execute(tx)
  return rows.map((row) => ({
    id: row.id,
    counted: row.counted,
    ended: row.ended,
    since: row.since?.getTime() ?? null,
    isUnclear: row.is_unclear === true,
  }))
}
