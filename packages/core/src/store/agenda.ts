import { sql } from 'kysely'

import { plainArray } from './array-text.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** What comes due: a schedule's next slot, or a run that waits. */
export type AgendaSource = 'slot' | 'run'

/** One lane and its earliest slot or waiting run. */
export interface LaneDue {
  readonly source: AgendaSource
  readonly lane: string
  readonly dueAt: number
}

/** A position in a lane. Of a schedule, or of a waiting run, which its slot tells from others of the same schedule. */
export interface LanePlace {
  readonly dueAt: number
  readonly scheduleId: string
  readonly slot: number
}

/** A lane, and behind which position to begin in it: what lies before was claimed, and dead index entries are all it has left. */
export interface LaneFrom {
  readonly lane: string
  readonly after: LanePlace | undefined
}

export interface Look {
  /** Postgres' clock when it answered, with fractions of a millisecond. */
  readonly now: number
  /** Lanes with something up to the horizon, the earliest first. */
  readonly lanes: readonly LaneDue[]
}

const BEFORE_ALL: LanePlace = { dueAt: -Infinity, scheduleId: '00000000-0000-0000-0000-000000000000', slot: -Infinity }

/**
 * The earliest slot and the earliest waiting run of each lane, up to a horizon. Serves the keeper's sleep; decides nothing.
 *
 * While no run waits, its half costs one look at an empty index: the condition with `exists` is evaluated once.
 */
export async function lookAhead(
  db: Db,
  p: { slots: readonly LaneFrom[]; runs: readonly LaneFrom[]; horizonMs: number; now: Date | null },
): Promise<Look> {
  const [slots, runs] = [columnsOf(p.slots), columnsOf(p.runs)]
  const until = sql`${nowOf(p.now)} + ${p.horizonMs} * interval '1 millisecond'`
  const { rows } = await sql<{ now: number; source: AgendaSource; lane: string | null; due_at: Date | null }>`
    select extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))::double precision * 1000 as now,
      due.source, due.lane, due.due_at
    from (select 1) as always
    left join lateral (
      select 'slot' as source, lanes.lane, earliest.due_at
      from unnest(${slots.names}::text[], ${slots.dues}::double precision[], ${slots.ids}::uuid[])
        as lanes(lane, after_due, after_id)
      cross join lateral (
        select schedules.due_at
        from carillon.schedules
        where schedules.lane = lanes.lane
          and schedules.state = 'active'
          and (schedules.due_at, schedules.id) > (to_timestamp(lanes.after_due / 1000.0), lanes.after_id)
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
        from carillon.runs
        where runs.lane = lanes.lane
          and runs.due_at is not null
          and (runs.due_at, runs.schedule_id, runs.scheduled_for) >
            (to_timestamp(lanes.after_due / 1000.0), lanes.after_id, to_timestamp(lanes.after_slot / 1000.0))
          and runs.due_at <= ${until}
        order by runs.due_at
        limit 1
      ) as earliest
      where (
        select exists (
          select
          from carillon.runs
          where runs.due_at is not null and runs.lane = any(${runs.names}::text[]) and runs.due_at <= ${until}
        )
      )
    ) as due on true
    order by due.due_at`.execute(db)
  return {
    now: rows[0]?.now ?? 0,
    lanes: rows.flatMap(({ source, lane, due_at }) =>
      lane === null || due_at === null ? [] : [{ source, lane, dueAt: due_at.getTime() }],
    ),
  }
}

/** The row of a schedule that is locked: nobody else changes it until the transaction is over. */
export interface LockedSchedule {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly targetKind: string
  readonly revision: number
  readonly nextSlotAt: number
  readonly excludedSlots: readonly number[]
  readonly autoPauseThreshold: number
  readonly consecutiveFailures: number
  readonly ownerSubject: string
  readonly grantId: string
}

interface LockedRow {
  now: Date
  ordinal: number
  id: string
  due_at: Date
  tenant_id: string
  project_id: string
  target_kind: string
  revision: number
  spread_slot_at: Date | null
  excluded_slots: Date[] | null
  auto_pause_threshold: number
  consecutive_failures: number
  owner_subject: string
  grant_id: string
}

export interface Claim {
  /** The transaction's now: what the policies decide by. */
  readonly now: number
  readonly schedules: readonly LockedSchedule[]
  /** Of each lane of which something was claimed, the last position. */
  readonly last: ReadonlyMap<string, LanePlace>
}

/** How far ahead a slot may be claimed at most: a worker that takes another instant for now gets nothing (I10). */
const AHEAD_MAX_MS = 100

/**
 * Locks due schedules, at most `perLane` of each lane, for the rest of the transaction, and tells what their rows say: as they
 * were locked, not as they were when the statement began. What another worker holds is passed over: it is being seen to. A
 * worker without a live lease gets nothing, or its runs would be nobody's.
 */
export async function claimDue(
  tx: Tx,
  p: { lanes: readonly LaneFrom[]; perLane: number; workerId: string; now: Date | null; isAhead?: boolean },
): Promise<Claim> {
  const notTooFar =
    p.isAhead === true ? sql`and ${p.now} <= clock_timestamp() + ${AHEAD_MAX_MS} * interval '1 millisecond'` : sql``
  // Whoever comes late, though it set out ahead, must not take the slot for now: it may be missed, or the lease be over.
  const now = p.isAhead === true ? sql<Date>`greatest(${p.now}::timestamptz, now())` : nowOf(p.now)
  const { names, dues, ids } = columnsOf(p.lanes)
  const { rows } = await sql<LockedRow>`
    select ${now} as now, lanes.ordinal::integer as ordinal, due.*
    from unnest(${names}::text[], ${dues}::double precision[], ${ids}::uuid[]) with ordinality
      as lanes(lane, after_due, after_id, ordinal)
    cross join lateral (
      select schedules.id, schedules.due_at, schedules.tenant_id, schedules.project_id, schedules.target_kind,
        schedules.revision, nullif(schedules.next_slot_at, schedules.due_at) as spread_slot_at, schedules.excluded_slots,
        schedules.auto_pause_threshold, schedules.consecutive_failures, schedules.owner_subject, schedules.grant_id
      from carillon.schedules
      where schedules.lane = lanes.lane
        and schedules.state = 'active'
        and (schedules.due_at, schedules.id) > (to_timestamp(lanes.after_due / 1000.0), lanes.after_id)
        and schedules.due_at <= ${now}
      order by schedules.due_at, schedules.id
      limit ${p.perLane}
      for update skip locked
    ) as due
    where exists (
      select from carillon.workers
      where workers.id = ${p.workerId} and workers.lease_expires_at > ${now} ${notTooFar}
    )`.execute(tx)
  const last = new Map<string, LanePlace>()
  for (const { ordinal, id, due_at } of rows) {
    const lane = p.lanes[ordinal - 1]?.lane
    if (lane !== undefined) last.set(lane, { dueAt: due_at.getTime(), scheduleId: id, slot: Infinity })
  }
  return { now: rows[0]?.now.getTime() ?? 0, schedules: rows.map(toLocked), last }
}

function toLocked(row: LockedRow): LockedSchedule {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    targetKind: row.target_kind,
    revision: row.revision,
    // Most are not spread: they are due at their slot.
    nextSlotAt: (row.spread_slot_at ?? row.due_at).getTime(),
    excludedSlots: row.excluded_slots?.map((slot) => slot.getTime()) ?? [],
    autoPauseThreshold: row.auto_pause_threshold,
    consecutiveFailures: row.consecutive_failures,
    ownerSubject: row.owner_subject,
    grantId: row.grant_id,
  }
}

/** Lanes and positions, as arrays for `unnest`. */
export function columnsOf(lanes: readonly LaneFrom[]): { names: string[]; dues: string; ids: string; slots: string } {
  const places = lanes.map(({ after }) => after ?? BEFORE_ALL)
  return {
    names: lanes.map(({ lane }) => lane),
    dues: plainArray(places.map(({ dueAt }) => dueAt)),
    ids: plainArray(places.map(({ scheduleId }) => scheduleId)),
    slots: plainArray(places.map(({ slot }) => slot)),
  }
}
