import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/** The slots of a schedule that have a line in the ledger, ascending; by who asked for the run. */
export interface AuditedLines {
  readonly scheduled: readonly number[]
  readonly manual: readonly number[]
}

/**
 * The lines of schedules with slots in a window, both ends included, the earliest `limit` of each schedule. As numbers in
 * one list per schedule: a row for each line would take ten times the memory.
 */
export async function listAuditedLines(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; from: Date; to: Date; limit: number },
): Promise<Map<string, AuditedLines>> {
  const { rows } = await sql<{ id: string; scheduled: number[] | null; manual: number[] | null }>`
    select audited.id,
      json_agg(line.slot order by line.slot) filter (where line.trigger = 'schedule') as scheduled,
      json_agg(line.slot order by line.slot) filter (where line.trigger = 'manual') as manual
    from unnest(${p.scheduleIds}::uuid[]) as audited(id)
    cross join lateral (
      select (extract(epoch from runs.scheduled_for) * 1000)::bigint as slot, runs.trigger
      from carillon.runs
      where runs.schedule_id = audited.id and runs.scheduled_for between ${p.from} and ${p.to}
      order by runs.scheduled_for
      limit ${p.limit}
    ) as line
    group by audited.id`.execute(db)
  return new Map(rows.map(({ id, scheduled, manual }) => [id, { scheduled: scheduled ?? [], manual: manual ?? [] }]))
}

/** Slots between two instants, both included. */
export interface SlotRange {
  readonly from: number
  readonly to: number
}

/**
 * The slots of schedules whose lines a change left to be written (`slot_backlogs`), unless that was long ago. Where statements do not see one snapshot, read
 * them before the lines: what is written in between is then in both, not in neither.
 */
export async function listBacklogRanges(
  db: Db | Tx,
  p: { scheduleIds: readonly string[]; madeAfter: Date },
): Promise<Map<string, SlotRange[]>> {
  const { rows } = await sql<{ schedule_id: string; next_slot_at: Date; until: Date }>`
    select backlogs.schedule_id, backlogs.next_slot_at, backlogs.until
    from carillon.slot_backlogs as backlogs
    where backlogs.schedule_id = any(${p.scheduleIds}::uuid[]) and backlogs.made_at > ${p.madeAfter}`.execute(db)
  const ranges = Map.groupBy(rows, ({ schedule_id }) => schedule_id)
  return new Map(
    [...ranges].map(([id, found]) => [
      id,
      found.map(({ next_slot_at, until }) => ({ from: next_slot_at.getTime(), to: until.getTime() })),
    ]),
  )
}
