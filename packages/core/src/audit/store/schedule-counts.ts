import { REFUSALS } from '@carillon/api'

import { bigint, boolean, columns, instant, integer, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { plainArray } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'

/** A skipped slot with one of these reasons counts as a failure of its schedule. */
const COUNTED_AS_FAILURE = plainArray([...REFUSALS, 'superseded'])

/** The counts that a schedule keeps in its own row, which must agree with its ledger. */
export interface AuditedCounts {
  readonly id: string
  readonly runCount: number
  readonly failureCount: number
  readonly consecutiveFailures: number
  readonly createdAt: number
  readonly revision: number
  /** False if the row of the current revision was deleted. */
  readonly hasRevision: boolean
  /** The schedule is deleted and lacks revisions: a purge is removing it in portions, revisions first. */
  readonly isBeingPurged: boolean
}

const COUNTS_COLUMNS = columns('schedules', {
  id: uuid,
  runCount: bigint,
  failureCount: bigint,
  consecutiveFailures: integer,
  createdAt: instant,
  revision: integer,
  hasRevision: boolean.as(sql`there.present > 0`),
  isBeingPurged: boolean.as(sql`schedules.state = 'deleted' and there.revisions < schedules.revision`),
})

export async function listAuditedCounts(db: Db | Tx, p: { ids: readonly string[] }): Promise<AuditedCounts[]> {
  return sql`
    select ${COUNTS_COLUMNS}
    from schedules
    -- Counted here because Postgres may scan all revisions to answer \`exists\` in a select list.
    cross join lateral (
      select count(*) as revisions, count(*) filter (where revisions.revision = schedules.revision) as present
      from schedule_revisions as revisions
      where revisions.schedule_id = schedules.id
    ) as there
    where schedules.id = any(${p.ids}::uuid[])`.execute(db)
}

/** The consecutive failures of a schedule, counted from its runs. */
export interface AuditedFailures {
  readonly id: string
  /** Runs and refused slots that count as failures since the count was last reset. */
  readonly ended: number
  /** When the schedule last succeeded or was resumed; null if the ledger has no such instant. */
  readonly since: number | null
  /** True if the ledger does not tell in which order runs were counted, or whether one of them was counted. */
  readonly isUnclear: boolean
}

const FAILURES_COLUMNS = columns('schedules', {
  id: uuid,
  ended: integer.as(sql`coalesce(failed.runs, 0)`),
  since: instant.orNull.as(sql`greatest(reset.at, schedules.resumed_at)`),
  isUnclear: boolean.as(sql`failed.is_unclear is true`),
})

/**
 * Counts the consecutive failures of schedules. Settle and begin count a run that failed after an attempt and a slot that was refused; a
 * success and a resume reset the count. Reads all lines of these schedules.
 */
export async function listAuditedFailures(tx: Tx, p: { ids: readonly string[] }): Promise<AuditedFailures[]> {
  return sql`
    with ended as materialized (
      select runs.schedule_id, runs.completed_at, runs.state, runs.reason
      from runs
      where runs.schedule_id = any(${p.ids}::uuid[]) and runs.completed_at is not null
        and (
          runs.state = 'succeeded'
          or (runs.state = 'failed' and runs.attempt_count > 0)
          or (runs.state = 'skipped' and runs.reason = any(${COUNTED_AS_FAILURE}::run_reason[]))
        )
    ), reset as materialized (
      select ended.schedule_id, max(ended.completed_at) as at
      from ended
      where ended.state = 'succeeded'
      group by ended.schedule_id
    ), failed as materialized (
      select schedules.id, count(*)::integer as runs,
        -- Runs that end within seconds of each other may be counted in either order: a settlement waits up to five seconds for a lock.
        bool_or(ended.reason = 'superseded' and ended.state = 'skipped' or ended.completed_at < base.at + interval '10 seconds') as is_unclear
      from schedules
      left join reset on reset.schedule_id = schedules.id
      cross join lateral (select greatest(reset.at, schedules.resumed_at) as at) as base
      join ended on ended.schedule_id = schedules.id and ended.state <> 'succeeded'
        and (base.at is null or ended.completed_at > base.at - interval '10 seconds')
      where schedules.id = any(${p.ids}::uuid[])
      group by schedules.id
    )
    select ${FAILURES_COLUMNS}
    from schedules
    left join reset on reset.schedule_id = schedules.id
    left join failed on failed.id = schedules.id
    where schedules.id = any(${p.ids}::uuid[])`.execute(tx)
}

/** Corrects the counts of a schedule. Call with its row locked. */
export async function correctCounts(
  tx: Tx,
  p: { id: string; runCount: number; failureCount: number; consecutiveFailures: number },
): Promise<void> {
  await sql`
    update schedules
    set run_count = ${p.runCount}, failure_count = ${p.failureCount}, consecutive_failures = ${p.consecutiveFailures}
    where schedules.id = ${p.id}`.execute(tx)
}
