import { boolean, columns, double, instant, text, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { isOpen } from '../../db/indexed-sql.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
import type { LedgerPosition } from './ledger-pages.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** An open run that perhaps no worker takes care of. */
export type UnattendedRun = { readonly scheduleId: string; readonly scheduledFor: number; readonly runId: string } & (
  | { readonly what: 'turn' }
  | { readonly what: 'due'; readonly dueAt: number; readonly lane: string }
  /** `lostAt` is when the lease of its worker expired; null if that worker has no row. */
  | { readonly what: 'held'; readonly workerId: string; readonly lostAt: number | null }
)

const OPEN_RUN_COLUMNS = columns('open', { scheduleId: uuid, scheduledFor: instant, runId: uuid.as(sql`open.id`) })

const UNATTENDED_COLUMNS = OPEN_RUN_COLUMNS.with('open', {
  dueAt: instant.orNull.as(sql`nullif(open.due_at, 'infinity')`),
  lane: text.orNull,
  workerId: uuid.orNull,
  lostAt: instant.orNull.as(sql`workers.lease_expires_at`),
})

/**
 * Open runs of schedules that need attention:
 * - `turn`: it waits for its turn, but all open runs of its schedule do, so that none will end and start it
 * - `due`: it has been due since `before` or longer
 * - `held`: the lease of its worker expired at `before` or earlier, or it started by then and its worker has no row
 *
 * Reads only the open runs of these schedules.
 */
export async function listUnattendedRuns(
  db: Db | Tx,
  p: { ids: readonly string[]; before: Date },
): Promise<UnattendedRun[]> {
  const rows = await sql`
    select ${UNATTENDED_COLUMNS}
    from (
      select runs.schedule_id, runs.scheduled_for, runs.id, runs.due_at, runs.waits_for, runs.lane, runs.worker_id,
        runs.started_at, bool_and(runs.waits_for is not distinct from 'turn') over (partition by runs.schedule_id) as all_wait
      from runs
      where runs.schedule_id = any(${p.ids}::uuid[]) and ${isOpen()}
    ) as open
    left join workers on workers.id = open.worker_id
    where open.due_at <= ${p.before}
      or open.all_wait
      or (open.worker_id is not null and open.waits_for is null and coalesce(workers.lease_expires_at, open.started_at) <= ${p.before})`.execute(
    db,
  )
  return rows.map(({ dueAt, lane, workerId, lostAt, ...run }) => {
    // A detached run has both: an instant, and the worker that dispatched it.
    if (dueAt !== null) return { ...run, what: 'due', dueAt, lane: lane ?? '' }
    return workerId === null ? { ...run, what: 'turn' } : { ...run, what: 'held', workerId, lostAt }
  })
}

/** An open run whose schedule is gone. */
export interface RunWithoutSchedule {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly runId: string
}

const EXAMINED_COLUMNS = OPEN_RUN_COLUMNS.with('open', {
  lacksSchedule: boolean.as(sql`open.schedule_id not in (select known.id from known)`),
})

/** Examines up to `limit` open runs from a position on. Returns those without a schedule, and where the next page begins. */
export async function listRunsWithoutSchedule(
  db: Db,
  p: { from: LedgerPosition; limit: number },
): Promise<{ runs: RunWithoutSchedule[]; next: LedgerPosition | null }> {
  const rows = await sql`
    with open as materialized (
      select runs.schedule_id, runs.scheduled_for, runs.id
      from runs
      where ${isOpen()} and (runs.schedule_id, runs.scheduled_for) >= (
        ${p.from.scheduleId}::uuid, coalesce(${p.from.slot === null ? null : new Date(p.from.slot)}, '-infinity'::timestamptz)
      )
      order by runs.schedule_id, runs.scheduled_for
      limit ${p.limit + 1}
    ), known as materialized (
      select schedules.id from schedules where schedules.id = any(array(select open.schedule_id from open))
    )
    select ${EXAMINED_COLUMNS}
    from open
    order by open.schedule_id, open.scheduled_for`.execute(db)
  const last = rows[p.limit]
  return {
    runs: rows.slice(0, p.limit).flatMap(({ lacksSchedule, ...run }) => (lacksSchedule ? [run] : [])),
    next: last === undefined ? null : { scheduleId: last.scheduleId, slot: last.scheduledFor },
  }
}

/** A worker whose lease has not expired. */
export interface LiveWorkerRow {
  readonly targetKinds: readonly string[]
  readonly aliveForMs: number
  /** Time since it last held as many runs as it can; null if it never did. */
  readonly fullMsAgo: number | null
}

export async function listLiveWorkers(db: Db | Tx, p: { now: Date | null }): Promise<LiveWorkerRow[]> {
  const worker = columns('workers', {
    targetKinds: text.list,
    aliveForMs: double.as(sql`(extract(epoch from ${nowOf(p.now)} - workers.started_at) * 1000)::float8`),
    fullMsAgo: double.orNull.as(sql`(extract(epoch from ${nowOf(p.now)} - workers.full_at) * 1000)::float8`),
  })
  return sql`
    select ${worker}
    from workers
    where workers.lease_expires_at > ${nowOf(p.now)}`.execute(db)
}

const FIRST_DUE_COLUMNS = columns('asked', {
  lane: text,
  slotAt: instant.orNull.as(sql`(
    select schedules.due_at
    from schedules
    where schedules.state = 'active' and schedules.lane = asked.lane
    order by schedules.due_at
    limit 1
  )`),
  runAt: instant.orNull.as(sql`(
    select runs.due_at
    from runs
    where runs.due_at is not null and runs.due_at < 'infinity' and runs.lane = asked.lane
    order by runs.due_at
    limit 1
  )`),
})

/** The instants at which the first slot and the first waiting run of each lane are due. */
export async function findFirstDue(
  db: Db | Tx,
  p: { lanes: readonly string[] },
): Promise<ReadonlyMap<string, { readonly slotAt: number | null; readonly runAt: number | null }>> {
  const rows = await sql`
    select ${FIRST_DUE_COLUMNS}
    from unnest(${p.lanes}::text[]) as asked(lane)`.execute(db)
  return new Map(rows.map(({ lane, ...first }) => [lane, first]))
}
