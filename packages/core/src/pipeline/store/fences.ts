import { sql } from 'kysely'

import type { RunFence } from '../../ledger/held-run.ts'

/** A row as `FENCE_COLUMNS` names it. */
export interface FenceRow {
  id: string
  schedule_id: string
  scheduled_for: Date
  worker_id: string
  token: number
  attempt_count: number
  target_kind: string
}

/** The runs that `FENCE_COLUMNS` are selected from, with their schedules and, if it still exists, the revision of each. */
export const RUNS_WITH_REVISION = sql`carillon.runs
  join carillon.schedules on schedules.id = runs.schedule_id
  left join carillon.schedule_revisions as revisions
    on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision`

export const FENCE_COLUMNS = sql`runs.id, runs.schedule_id, runs.scheduled_for, runs.worker_id, runs.token, runs.attempt_count,
  coalesce(revisions.target_kind, schedules.target_kind) as target_kind`

export function toFence(row: FenceRow): RunFence {
  return {
    runId: row.id,
    scheduleId: row.schedule_id,
    scheduledFor: row.scheduled_for.getTime(),
    workerId: row.worker_id,
    token: row.token,
    attempt: row.attempt_count,
    targetKind: row.target_kind,
  }
}
