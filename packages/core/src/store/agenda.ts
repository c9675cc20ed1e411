import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** One lane and its earliest slot. */
export interface LaneDue {
  readonly lane: string
  readonly dueAt: number
}

export interface Look {
  /** Postgres' clock when it answered, with fractions of a millisecond. */
  readonly now: number
  /** Lanes with a slot up to the horizon, the earliest first. */
  readonly lanes: readonly LaneDue[]
}

/**
 * The earliest slot of each lane, up to a horizon. Serves the keeper's sleep; decides nothing.
 * `from` passes over what was rung already: after a herd, dead index entries lie there until vacuumed.
 */
export async function lookAhead(
  db: Db,
  p: { lanes: readonly string[]; horizonMs: number; from: Date | null; now: Date | null },
): Promise<Look> {
  const { rows } = await sql<{ now: number; lane: string | null; due_at: Date | null }>`
    select extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))::double precision * 1000 as now,
      due.lane, due.due_at
    from (select 1) as always
    left join lateral (
      select lanes.lane, earliest.due_at
      from unnest(${p.lanes}::text[]) as lanes(lane)
      cross join lateral (
        select schedules.due_at
        from carillon.schedules
        where schedules.lane = lanes.lane
          and schedules.state = 'active'
          and schedules.due_at >= coalesce(${p.from}::timestamptz, '-infinity')
          and schedules.due_at <= ${nowOf(p.now)} + ${p.horizonMs} * interval '1 millisecond'
        order by schedules.due_at
        limit 1
      ) as earliest
    ) as due on true
    order by due.due_at`.execute(db)
  return {
    now: rows[0]?.now ?? 0,
    lanes: rows.flatMap(({ lane, due_at }) =>
      lane === null || due_at === null ? [] : [{ lane, dueAt: due_at.getTime() }],
    ),
  }
}

export interface Claim {
  /** The transaction's now: what the policies decide by. */
  readonly now: number
  readonly scheduleIds: readonly string[]
}

/**
 * Locks due schedules, at most `perLane` of each lane, for the rest of the transaction. What another worker holds is passed
 * over: it is being seen to. A worker without a live lease gets nothing, or its runs would be nobody's.
 */
export async function claimDue(
  tx: Tx,
  p: { lanes: readonly string[]; perLane: number; workerId: string; now: Date | null },
): Promise<Claim> {
  const { rows } = await sql<{ now: Date; id: string }>`
    select ${nowOf(p.now)} as now, due.id
    from unnest(${p.lanes}::text[]) as lanes(lane)
    cross join lateral (
      select schedules.id
      from carillon.schedules
      where schedules.lane = lanes.lane
        and schedules.state = 'active'
        and schedules.due_at <= ${nowOf(p.now)}
      order by schedules.due_at, schedules.id
      limit ${p.perLane}
      for update skip locked
    ) as due
    where exists (
      select from carillon.workers
      where workers.id = ${p.workerId} and workers.lease_expires_at > ${nowOf(p.now)}
    )`.execute(tx)
  return { now: rows[0]?.now.getTime() ?? 0, scheduleIds: rows.map(({ id }) => id) }
}
