import { columns, double, text } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
import type { RunFence } from '../../ledger/held-run.ts'
import { FENCE_COLUMNS, RUNS_WITH_REVISION } from './fences.ts'

/* In every function, `now` is null in production: Postgres' own clock decides (I10). A test passes an instant. */

/** A detached run that is due: it was completed, is to be cancelled, or its deadline has passed. */
export interface DetachedRun extends RunFence {
  /** JSON text; empty if the revision is missing. */
  readonly policy: string
}

const DETACHED_COLUMNS = FENCE_COLUMNS.with('revisions', { policy: text.orNull.as(sql`revisions.policy::text`) })

/** Detached runs of some lanes that are due, at most `limit`. Uses `runs_waiting_idx`. */
export async function findDueDetached(
  db: Db,
  p: { lanes: readonly string[]; limit: number; now: Date | null },
): Promise<DetachedRun[]> {
  const rows = await sql`
    select ${DETACHED_COLUMNS}
    from ${RUNS_WITH_REVISION}
    where runs.lane = any(${p.lanes}::text[])
      and runs.due_at is not null
      and runs.due_at <= ${nowOf(p.now)}
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ ...row, policy: row.policy ?? '' }))
}

/** How long until the first detached run of some lanes is due, in milliseconds; null if none is within the horizon. */
export async function findNextDetached(
  db: Db,
  p: { lanes: readonly string[]; withinMs: number; now: Date | null },
): Promise<number | null> {
  const inMs = double.orNull.as(sql`
    (extract(epoch from min(runs.due_at) - coalesce(${p.now}::timestamptz, clock_timestamp())) * 1000)::float8`)
  const [row] = await sql`
    select ${columns('runs', { inMs })}
    from runs
    where runs.lane = any(${p.lanes}::text[])
      and runs.due_at is not null
      and runs.due_at <= ${nowOf(p.now)} + ${p.withinMs} * interval '1 millisecond'`.execute(db)
  const inMsFound = row?.inMs ?? null
  return inMsFound === null ? null : Math.max(1, Math.ceil(inMsFound))
}
