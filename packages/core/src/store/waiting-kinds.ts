import { sql } from 'kysely'

import type { Db } from './database.ts'
import { nowOf } from './now.ts'

/** The runs of one kind of target that wait. */
export interface WaitingKind {
  readonly targetKind: string
  readonly waiting: number
  /** For how long the oldest has been due that no worker took; 0 if none is due. */
  readonly overdueMs: number
}

/** Reads every waiting run: for a diagnosis, not for a pipeline. Lanes are named after their kind. */
export async function listWaitingKinds(db: Db, p: { now: Date | null }): Promise<WaitingKind[]> {
  const { rows } = await sql<{ target_kind: string; waiting: number; overdue_ms: number | null }>`
    select split_part(runs.lane, '.', 1) as target_kind, count(*)::integer as waiting,
      (extract(epoch from ${nowOf(p.now)} - min(runs.due_at) filter (where runs.due_at <= ${nowOf(p.now)})) * 1000)::float8
        as overdue_ms
    from carillon.runs
    where runs.due_at is not null
    group by split_part(runs.lane, '.', 1)
    order by split_part(runs.lane, '.', 1)`.execute(db)
  return rows.map(({ target_kind, waiting, overdue_ms }) => ({
    targetKind: target_kind,
    waiting,
    overdueMs: overdue_ms ?? 0,
  }))
}
