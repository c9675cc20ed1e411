import { columns, double, instant, text, textOf } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { plainArray } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'
import { NIL_UUID } from '../../kernel/ids.ts'

/** What comes due: the next slot of a schedule, or a waiting run. */
export type DueSource = 'slot' | 'run'

/** A lane with its earliest slot or waiting run. */
export interface DueLane {
  readonly source: DueSource
  readonly lane: string
  readonly dueAt: number
}

/** A position in the index of a lane: that of a schedule, or that of a waiting run, which is known by its schedule and slot. */
export interface LanePosition {
  readonly dueAt: number
  readonly scheduleId: string
  /** Of a waiting run. In the position of a schedule it has no meaning. */
  readonly slot: number
}

/** A lane and the position to start after. What lies before was claimed: mostly dead index entries are left there. */
export interface LaneFrom {
  readonly lane: string
  /** Undefined: start at the beginning. */
  readonly after: LanePosition | undefined
}

export interface Look {
  /** Postgres' clock when it answered, with fractions of a millisecond. */
  readonly now: number
  /** Lanes with something due up to the horizon, earliest first. */
  readonly lanes: readonly DueLane[]
}

const BEFORE_ALL: LanePosition = {
  dueAt: -Infinity,
  scheduleId: NIL_UUID,
  slot: -Infinity,
}

/** The active schedules of a row of `lanes`, after its position: worded for `schedules_agenda_idx`. */
export const SCHEDULES_OF_LANE = sql`
  schedules.lane = lanes.lane and schedules.state = 'active'
    and (schedules.due_at, schedules.id) > (to_timestamp(lanes.after_due / 1000.0), lanes.after_id)`

/** The waiting runs of a row of `lanes`, after its position: worded for `runs_waiting_idx`. */
export const RUNS_OF_LANE = sql`
  runs.lane = lanes.lane and runs.due_at is not null
    and (runs.due_at, runs.schedule_id, runs.scheduled_for) >
      (to_timestamp(lanes.after_due / 1000.0), lanes.after_id, to_timestamp(lanes.after_slot / 1000.0))`

/** The lanes, and null if there is none: then one row still tells the time. */
const LANE_COLUMNS = columns('due', {
  source: textOf<DueSource>().orNull,
  lane: text.orNull,
  dueAt: instant.orNull,
})

/**
 * LOOK: the earliest slot and the earliest waiting run of each lane, up to a horizon. The pipeline loop sleeps until the earliest of
 * them; a claim decides what is due. `now` is null in production: Postgres' clock decides.
 *
 * While no run waits, the half for runs costs one lookup in an empty index: Postgres evaluates the `exists` once.
 */
export async function lookAhead(
  db: Db,
  p: { slots: readonly LaneFrom[]; runs: readonly LaneFrom[]; horizonMs: number; now: Date | null },
): Promise<Look> {
  const [slots, runs] = [columnsOf(p.slots), columnsOf(p.runs)]
  const until = sql`${nowOf(p.now)} + ${p.horizonMs} * interval '1 millisecond'`
  const now = sql`extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))::double precision * 1000`
  const rows = await sql`
    select ${LANE_COLUMNS.with('time', { now: double.as(now) })}
    from (select 1) as always
    left join lateral (
      select 'slot' as source, lanes.lane, earliest.due_at
      from unnest(${slots.names}::text[], ${slots.dues}::double precision[], ${slots.ids}::uuid[])
        as lanes(lane, after_due, after_id)
      cross join lateral (
        select schedules.due_at
        from schedules
        where ${SCHEDULES_OF_LANE}
          and schedules.due_at <= ${until}
        order by schedules.due_at
        limit 1
      ) as earliest
      union all
      select 'run', lanes.lane, earliest.due_at
      from unnest(
        ${runs.names}::text[], ${runs.dues}::double precision[], ${runs.ids}::uuid[], ${runs.slots}::double precision[]
      ) as lanes(lane, after_due, after_id, after_slot)
      cross join lateral (
        select runs.due_at
        from runs
        where ${RUNS_OF_LANE}
          and runs.due_at <= ${until}
        order by runs.due_at
        limit 1
      ) as earliest
      where (
        select exists (
          select
          from runs
          where runs.due_at is not null and runs.lane = any(${runs.names}::text[]) and runs.due_at <= ${until}
        )
      )
    ) as due on true
    order by due.due_at`.execute(db)
  return {
    now: rows[0]?.now ?? 0,
    lanes: rows.flatMap(({ source, lane, dueAt }) =>
      source === null || lane === null || dueAt === null ? [] : [{ source, lane, dueAt }],
    ),
  }
}

/** Lanes and positions as arrays for `unnest`. */
export function columnsOf(lanes: readonly LaneFrom[]): { names: string[]; dues: string; ids: string; slots: string } {
  const positions = lanes.map(({ after }) => after ?? BEFORE_ALL)
  return {
    names: lanes.map(({ lane }) => lane),
    dues: plainArray(positions.map(({ dueAt }) => dueAt)),
    ids: plainArray(positions.map(({ scheduleId }) => scheduleId)),
    slots: plainArray(positions.map(({ slot }) => slot)),
  }
}
