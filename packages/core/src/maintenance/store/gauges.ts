import { RUN_STATES, STORED_SCHEDULE_STATES, type RunState } from '@carillon/api'

import { bigint, columns, double, text, word } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { activeLanes, isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
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
  /** Runs whose target passed the work on. */
  readonly detached: number
  readonly running: number
  /** The age of the oldest backlog of slots without lines; 0 if there is none. */
  readonly backlogAgeSeconds: number
  /**
   * The lag of the Postgres replica that is furthest behind; 0 if it has caught up. A replica that does not say how far it has replayed does
   * not count. Null if no replica counts, or if this role is not in `pg_monitor`: then Postgres hides what replicas say.
   */
  readonly replicationLagSeconds: number | null
}

/** Everything that the gauges show. */
export interface Gauges extends Workload {
  readonly schedules: readonly ScheduleCount[]
}

const COUNT_COLUMNS = columns('schedules', {
  state: word('schedule_state', STORED_SCHEDULE_STATES),
  targetKind: text,
  count: bigint.as(sql`count(*)`),
})

/** Scans all schedules, so the collector calls this less often the longer it takes. */
export async function countSchedules(tx: Tx): Promise<ScheduleCount[]> {
  // A full scan reads the table in order; an index scan would read all of its pages in random order. The statement has no
  // parameters, so Postgres plans it each time and respects the setting.
  await sql`set local enable_seqscan = on`.execute(tx)
  return sql`
    select ${COUNT_COLUMNS}
    from schedules
    where schedules.state <> 'deleted'
    group by schedules.state, schedules.target_kind`.execute(tx)
}

const OPEN_COLUMNS = columns('runs', { state: word('run_state', RUN_STATES), count: bigint.as(sql`count(*)`) })
/** Of rows of `pg_stat_replication`. */
export const LAG_COLUMNS = columns('replicas', {
  // Postgres forgets the lag of a replica that has caught up while nothing is written. It knows no lag either of a replica that never said
  // how far it has replayed.
  lagSeconds: double.orNull.as(sql`extract(epoch from max(
      case
        when replicas.replay_lag is not null then replicas.replay_lag
        when replicas.state = 'streaming' and replicas.replay_lsn >= replicas.sent_lsn then '0'::interval
      end
    ))::float8`),
})

/** Reads only the rows that it counts, by index. */
export async function countWork(db: Db, p: { now: Date | null }): Promise<Workload> {
  const open = await sql`
    select ${OPEN_COLUMNS}
    from runs
    where ${isOpen()}
    group by runs.state`.execute(db)
  const [replicas] = await sql`
    select ${LAG_COLUMNS}
    from pg_stat_replication as replicas`.execute(db)
  const countOpen = (isCounted: (state: RunState) => boolean): number =>
    open.filter(({ state }) => isCounted(state)).reduce((sum, { count }) => sum + count, 0)
  return {
    due: await countDue(db, p),
    // An open run that no worker holds waits, unless the called side works on it.
    waiting: countOpen((state) => state !== 'running' && state !== 'detached'),
    detached: countOpen((state) => state === 'detached'),
    running: countOpen((state) => state === 'running'),
    backlogAgeSeconds: ((await ageOfOldestBacklog(db, p)) ?? 0) / 1000,
    replicationLagSeconds: replicas?.lagSeconds ?? null,
  }
}

/** The agenda index is ordered by lane, so this counts the due schedules of each lane. */
async function countDue(db: Db, { now }: { now: Date | null }): Promise<number> {
  const [counted] = await sql`
    with recursive ${activeLanes()}
    select ${columns('due', { due: bigint.as(sql`coalesce(sum(due.count), 0)::bigint`) })}
    from lanes
    cross join lateral (
      select count(*) as count
      from schedules
      where schedules.state = 'active' and schedules.lane = lanes.lane and schedules.due_at <= ${nowOf(now)}
    ) as due`.execute(db)
  return counted?.due ?? 0
}
