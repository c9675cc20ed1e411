import { sql } from 'kysely'

import type { Db } from './database.ts'
import { isOpen } from './open-runs.ts'

/** A position in the ledger, which is in the order of schedules and their slots. */
export interface LedgerPosition {
  readonly scheduleId: string
  /** Null: before all slots of the schedule. */
  readonly slot: number | null
}

/** What lies between two positions of the ledger. */
export interface LedgerPage {
  /** In the order of ids. Of the first and of the last one only a part may lie in the page. */
  readonly scheduleIds: readonly string[]
  /** Where the next page begins; null if this one is the last. */
  readonly next: LedgerPosition | null
}

interface Key {
  readonly schedule_id: string
  readonly scheduled_for: Date
}

/**
 * Finds a page that begins at a position and holds at most so many schedules, runs and attempts. The runs and attempts that are there
 * decide, not what schedules say of themselves, so every page is bounded. Only the attempts of a single slot are not divided.
 */
export async function findLedgerPage(
  db: Db,
  p: { from: LedgerPosition; schedules: number; lines: number },
): Promise<LedgerPage> {
  const from = sql`(${p.from.scheduleId}::uuid, coalesce(${p.from.slot === null ? null : new Date(p.from.slot)}, '-infinity'::timestamptz))`
  const { rows } = await sql<{ ids: string[] | null; run: Key | null; attempt: Key | null }>`
    select
      (
        select json_agg(candidates.id order by candidates.id)
        from (
          select schedules.id from carillon.schedules where schedules.id >= ${p.from.scheduleId}::uuid
          order by schedules.id
          limit ${p.schedules + 1}
        ) as candidates
      ) as ids,
      (
        select json_build_object('schedule_id', ended.schedule_id, 'scheduled_for', ended.scheduled_for)
        from (
          select runs.schedule_id, runs.scheduled_for from carillon.runs
          where (runs.schedule_id, runs.scheduled_for) >= ${from}
          order by runs.schedule_id, runs.scheduled_for
          offset ${p.lines} limit 1
        ) as ended
      ) as run,
      (
        select json_build_object('schedule_id', ended.schedule_id, 'scheduled_for', ended.scheduled_for)
        from (
          select attempts.schedule_id, attempts.scheduled_for from carillon.attempts
          where (attempts.schedule_id, attempts.scheduled_for) >= ${from}
          order by attempts.schedule_id, attempts.scheduled_for
          offset ${p.lines} limit 1
        ) as ended
      ) as attempt`.execute(db)
  const [row] = rows
  const ids = row?.ids ?? []
  const beyond = ids[p.schedules]
  const ends = [row?.run, row?.attempt].flatMap((key) => (key == null ? [] : [positionAfter(p.from, key)]))
  if (beyond !== undefined) ends.push({ scheduleId: beyond, slot: null })
  const end = ends.toSorted(inOrder)[0] ?? null
  // Only a schedule that has more lines than a page is divided: of a part not everything can be told.
  const next = end !== null && end.scheduleId !== p.from.scheduleId ? { scheduleId: end.scheduleId, slot: null } : end
  const isWithin = (id: string): boolean =>
    next === null || id < next.scheduleId || (id === next.scheduleId && next.slot !== null)
  return { scheduleIds: ids.filter(isWithin), next }
}

/** A slot with more attempts than a page holds is passed as a whole, or no page would get beyond it. */
function positionAfter(from: LedgerPosition, { schedule_id: scheduleId, scheduled_for }: Key): LedgerPosition {
  const slot = new Date(scheduled_for).getTime()
  return { scheduleId, slot: scheduleId === from.scheduleId && slot === from.slot ? slot + 1 : slot }
}

function inOrder(a: LedgerPosition, b: LedgerPosition): number {
  if (a.scheduleId !== b.scheduleId) return a.scheduleId < b.scheduleId ? -1 : 1
  return (a.slot ?? -Infinity) - (b.slot ?? -Infinity)
}

/** An open run whose schedule is gone. */
export interface StrandedRun {
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly runId: string
}

/** Looks at so many open runs from a position on; answers those without a schedule, and where the next page begins. */
export async function listStrandedRuns(
  db: Db,
  p: { from: LedgerPosition; limit: number },
): Promise<{ runs: StrandedRun[]; next: LedgerPosition | null }> {
  const { rows } = await sql<{ schedule_id: string; scheduled_for: Date; id: string; is_stranded: boolean }>`
    with open as materialized (
      select runs.schedule_id, runs.scheduled_for, runs.id
      from carillon.runs
      where ${isOpen()} and (runs.schedule_id, runs.scheduled_for) >= (
        ${p.from.scheduleId}::uuid, coalesce(${p.from.slot === null ? null : new Date(p.from.slot)}, '-infinity'::timestamptz)
      )
      order by runs.schedule_id, runs.scheduled_for
      limit ${p.limit + 1}
    ), known as materialized (
      select schedules.id from carillon.schedules where schedules.id = any(array(select open.schedule_id from open))
    )
    select open.schedule_id, open.scheduled_for, open.id, open.schedule_id not in (select known.id from known) as is_stranded
    from open
    order by open.schedule_id, open.scheduled_for`.execute(db)
  const last = rows[p.limit]
  return {
    runs: rows
      .slice(0, p.limit)
      .filter(({ is_stranded }) => is_stranded)
      .map((row) => ({ scheduleId: row.schedule_id, scheduledFor: row.scheduled_for.getTime(), runId: row.id })),
    next: last === undefined ? null : { scheduleId: last.schedule_id, slot: last.scheduled_for.getTime() },
  }
}
