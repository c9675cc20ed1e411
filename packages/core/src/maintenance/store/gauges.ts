import type { RunState } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { activeLanes, isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { ageOfOldestBacklog } from '../../ledger/backlogs.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** How many schedules there are in one state, of one kind of target. */
export interface ScheduleCount {
  readonly state: string
  readonly targetKind: string
  readonly count: number
}

/** Work that waits, and work in progress. */
export interface Workload {
  /** Slots that are due and have not begun. */
  readonly due: number
  /** Runs that wait for a retry, their turn or a worker. */
  readonly waiting: number
  readonly running: number
  /** The age of the oldest backlog of slots without lines; 0 if there is none. */
  readonly backlogAgeSeconds: number
  /** The lag of the Postgres replica that is furthest behind; null if there is no replica, or if this role may not read the lag. */
  readonly replicationLagSeconds: number | null
}

/** Everything that the gauges show. */
export interface Gauges extends Workload {
  readonly schedules: readonly ScheduleCount[]
}

/** Scans all schedules, so the collector calls this less often the longer it takes. */
export async function countSchedules(tx: Tx): Promise<ScheduleCount[]> {
  // A full scan reads the table in order; an index scan would read all of its pages in random order. The statement has no
  // parameters, so Postgres plans it each time and respects the setting.
  await sql`set local enable_seqscan = on`.execute(tx)
  const { rows } = await sql<{ state: string; target_kind: string; count: string }>`
    select schedules.state, schedules.target_kind, count(*) as count
    from carillon.schedules
    where schedules.state <> 'deleted'
    group by schedules.state, schedules.target_kind`.execute(tx)
  return rows.map(({ state, target_kind, count }) => ({ state, targetKind: target_kind, count: Number(count) }))
}

/** Reads only the rows that it counts, by index. */
export async function countWork(db: Db, p: { now: Date | null }): Promise<Workload> {
  const { rows: open } = await sql<{ state: RunState; count: string }>`
    select runs.state, count(*) as count
    from carillon.runs
    where ${isOpen()}
    group by runs.state`.execute(db)
  const { rows: replicas } = await sql<{ lag_seconds: number | null }>`
    select extract(epoch from max(replicas.replay_lag))::float8 as lag_seconds
    from pg_stat_replication as replicas`.execute(db)
  const countOpen = (isCounted: (state: RunState) => boolean): number =>
    open.filter(({ state }) => isCounted(state)).reduce((sum, { count }) => sum + Number(count), 0)
  return {
    due: await countDue(db, p),
    // An open run that no worker holds waits.
    waiting: countOpen((state) => state !== 'running'),
    running: countOpen((state) => state === 'running'),
    backlogAgeSeconds: ((await ageOfOldestBacklog(db, p)) ?? 0) / 1000,
    replicationLagSeconds: replicas[0]?.lag_seconds ?? null,
  }
}

/** The agenda index is ordered by lane, so this counts the due schedules of each lane. */
async function countDue(db: Db, { now }: { now: Date | null }): Promise<number> {
  const { rows } = await sql<{ due: string }>`
    with recursive ${activeLanes()}
    select coalesce(sum(due.count), 0) as due
    from lanes
    cross join lateral (
      select count(*) as count
      from carillon.schedules
      where schedules.state = 'active' and schedules.lane = lanes.lane and schedules.due_at <= ${nowOf(now)}
    ) as due`.execute(db)
  return Number(rows[0]?.due ?? 0)
}
