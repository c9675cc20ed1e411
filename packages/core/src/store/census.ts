import { sql } from 'kysely'

import type { Db } from './database.ts'
import { nowOf } from './now.ts'
import { isOpen } from './open-runs.ts'

/** How many there are of what. */
export interface Census {
  readonly schedules: readonly { readonly state: string; readonly targetKind: string; readonly count: number }[]
  /** Slots that are due and not begun. */
  readonly due: number
  /** Runs that wait for a retry, their turn or a worker. */
  readonly waiting: number
  readonly running: number
  /** Of the replica that is furthest behind; null if there is none, or if this role may not know. */
  readonly replicationLagSeconds: number | null
}

/** Counts schedules and what is under way. Reads every schedule, so it is asked for now and then, not per slot. */
export async function takeCensus(db: Db, p: { now: Date | null }): Promise<Census> {
  const { rows: schedules } = await sql<{ state: string; target_kind: string; count: string; due: string }>`
    select schedules.state, schedules.target_kind, count(*) as count,
      count(*) filter (where schedules.due_at <= ${nowOf(p.now)}) as due
    from carillon.schedules
    where schedules.state <> 'deleted'
    group by schedules.state, schedules.target_kind`.execute(db)
  const { rows: open } = await sql<{ state: string; count: string }>`
    select runs.state, count(*) as count
    from carillon.runs
    where ${isOpen()}
    group by runs.state`.execute(db)
  const { rows: replicas } = await sql<{ lag_seconds: number | null }>`
    select extract(epoch from max(replicas.replay_lag))::float8 as lag_seconds
    from pg_stat_replication as replicas`.execute(db)
  const openIn = (...states: string[]): number =>
    open.filter(({ state }) => states.includes(state)).reduce((sum, { count }) => sum + Number(count), 0)
  return {
    schedules: schedules.map(({ state, target_kind, count }) => ({
      state,
      targetKind: target_kind,
      count: Number(count),
    })),
    due: schedules.reduce((sum, { due }) => sum + Number(due), 0),
    waiting: openIn('pending', 'retrying'),
    running: openIn('running'),
    replicationLagSeconds: replicas[0]?.lag_seconds ?? null,
  }
}
