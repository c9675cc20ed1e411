import { sql } from 'kysely'

import { activeLanes } from './active-lanes.ts'
import type { Db } from './database.ts'
import { nowOf } from './now.ts'
import { isOpen } from './open-runs.ts'
import { ageOfOldestBacklog } from './slot-backlogs.ts'

/** How many schedules there are in one state, of one kind of target. */
export interface ScheduleCount {
  readonly state: string
  readonly targetKind: string
  readonly count: number
}

/** What waits, and what is under way. */
export interface Workload {
  /** Slots that are due and not begun. */
  readonly due: number
  /** Runs that wait for a retry, their turn or a worker. */
  readonly waiting: number
  readonly running: number
  /** For how long the oldest backlog of slots has waited for its lines; 0 if there is none. */
  readonly backlogAgeSeconds: number
  /** Of the replica that is furthest behind; null if there is none, or if this role may not know. */
  readonly replicationLagSeconds: number | null
}

/** How many there are of what. */
export interface Census extends Workload {
  readonly schedules: readonly ScheduleCount[]
}

/** Reads every schedule, so it is asked for the more seldom the more there are. */
export async function countSchedules(db: Db): Promise<ScheduleCount[]> {
  return db.transaction().execute(async (tx) => {
    // All of them are wanted: in the order of an index they would be read from all over the disk. Without parameters it is
    // planned each time, so this counts.
    await sql`set local enable_seqscan = on`.execute(tx)
    const { rows } = await sql<{ state: string; target_kind: string; count: string }>`
      select schedules.state, schedules.target_kind, count(*) as count
      from carillon.schedules
      where schedules.state <> 'deleted'
      group by schedules.state, schedules.target_kind`.execute(tx)
    return rows.map(({ state, target_kind, count }) => ({ state, targetKind: target_kind, count: Number(count) }))
  })
}

/** Reads nothing but what it counts, however many schedules and runs there are beside it. */
export async function countWork(db: Db, p: { now: Date | null }): Promise<Workload> {
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
    due: await countDue(db, p),
    waiting: openIn('pending', 'retrying'),
    running: openIn('running'),
    backlogAgeSeconds: ((await ageOfOldestBacklog(db, p)) ?? 0) / 1000,
    replicationLagSeconds: replicas[0]?.lag_seconds ?? null,
  }
}

/** The agenda is by lane: it is walked from lane to lane, and of each only as far as it is due. */
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
