import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** A worker whose lease holds, as it last said. */
export interface WorkerRoom {
  readonly targetKinds: readonly string[]
  readonly aliveForMs: number
  /** Since it last had no room for another run; null: it always had some. */
  readonly fullMsAgo: number | null
}

/** The workers whose lease holds. */
export async function listLivingWorkers(db: Db | Tx, p: { now: Date | null }): Promise<WorkerRoom[]> {
  const { rows } = await sql<{ target_kinds: string[]; alive_for_ms: number; full_ms_ago: number | null }>`
    select workers.target_kinds,
      (extract(epoch from ${nowOf(p.now)} - workers.started_at) * 1000)::float8 as alive_for_ms,
      (extract(epoch from ${nowOf(p.now)} - workers.full_at) * 1000)::float8 as full_ms_ago
    from carillon.workers
    where workers.lease_expires_at > ${nowOf(p.now)}`.execute(db)
  return rows.map((row) => ({
    targetKinds: row.target_kinds,
    aliveForMs: row.alive_for_ms,
    fullMsAgo: row.full_ms_ago,
  }))
}

/** When the first slot and the first waiting run of lanes are due, by lane. */
export async function findFirstDue(
  db: Db | Tx,
  p: { lanes: readonly string[] },
): Promise<ReadonlyMap<string, { readonly slotAt: number | null; readonly runAt: number | null }>> {
  const { rows } = await sql<{ lane: string; slot_at: Date | null; run_at: Date | null }>`
    select asked.lane,
      (
        select schedules.due_at
        from carillon.schedules
        where schedules.state = 'active' and schedules.lane = asked.lane
        order by schedules.due_at
        limit 1
      ) as slot_at,
      (
        select runs.due_at
        from carillon.runs
        where runs.due_at is not null and runs.due_at < 'infinity' and runs.lane = asked.lane
        order by runs.due_at
        limit 1
      ) as run_at
    from unnest(${p.lanes}::text[]) as asked(lane)`.execute(db)
  return new Map(
    rows.map(({ lane, slot_at, run_at }) => [
      lane,
      { slotAt: slot_at?.getTime() ?? null, runAt: run_at?.getTime() ?? null },
    ]),
  )
}
