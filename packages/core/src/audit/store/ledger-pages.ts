import { columns, json } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { sql } from '../../db/sql.ts'

/** A position in the ledger, ordered by schedule and slot. */
export interface LedgerPosition {
  readonly scheduleId: string
  /** Null: before the first slot of the schedule. */
  readonly slot: number | null
}

/** The part of the ledger between two positions. */
export interface LedgerPage {
  /** In the order of ids. The page may hold only a part of the first and of the last one. */
  readonly scheduleIds: readonly string[]
  /** Where the next page begins; null if this one is the last. */
  readonly next: LedgerPosition | null
}

interface Key {
  readonly scheduleId: string
  /** An instant as Postgres writes it into JSON. */
  readonly scheduledFor: string
}

/**
 * Finds a page that begins at a position and holds at most `schedules` schedules, `lines` runs and `lines` attempts. It counts rows, and
 * does not rely on the counts that schedules store, so every page is bounded. Only the attempts of a single slot are never split.
 */
export async function findLedgerPage(
  db: Db,
  p: { from: LedgerPosition; schedules: number; lines: number },
): Promise<LedgerPage> {
  const from = sql`(${p.from.scheduleId}::uuid, coalesce(${p.from.slot === null ? null : new Date(p.from.slot)}, '-infinity'::timestamptz))`
  const page = columns('page', {
    ids: json<readonly string[]>().orNull.as(sql`(
      select json_agg(candidates.id order by candidates.id)
      from (
        select schedules.id from schedules where schedules.id >= ${p.from.scheduleId}::uuid
        order by schedules.id
        limit ${p.schedules + 1}
      ) as candidates
    )`),
    run: json<Key>().orNull.as(sql`(
      select json_build_object('scheduleId', ended.schedule_id, 'scheduledFor', ended.scheduled_for)
      from (
        select runs.schedule_id, runs.scheduled_for from runs
        where (runs.schedule_id, runs.scheduled_for) >= ${from}
        order by runs.schedule_id, runs.scheduled_for
        offset ${p.lines} limit 1
      ) as ended
    )`),
    attempt: json<Key>().orNull.as(sql`(
      select json_build_object('scheduleId', ended.schedule_id, 'scheduledFor', ended.scheduled_for)
      from (
        select attempts.schedule_id, attempts.scheduled_for from attempts
        where (attempts.schedule_id, attempts.scheduled_for) >= ${from}
        order by attempts.schedule_id, attempts.scheduled_for
        offset ${p.lines} limit 1
      ) as ended
    )`),
  })
  const [row] = await sql`select ${page}`.execute(db)
  const ids = row?.ids ?? []
  const beyond = ids[p.schedules]
  const ends = [row?.run, row?.attempt].flatMap((key) => (key == null ? [] : [positionAfter(p.from, key)]))
  if (beyond !== undefined) ends.push({ scheduleId: beyond, slot: null })
  const end = ends.toSorted(inOrder)[0] ?? null
  // Only a schedule with more lines than a page holds is split: some checks need all lines of a schedule.
  const next = end !== null && end.scheduleId !== p.from.scheduleId ? { scheduleId: end.scheduleId, slot: null } : end
  const isWithin = (id: string): boolean =>
    next === null || id < next.scheduleId || (id === next.scheduleId && next.slot !== null)
  return { scheduleIds: ids.filter(isWithin), next }
}

/** A slot with more attempts than a page holds is read whole; otherwise the next page would begin at the same slot. */
function positionAfter(from: LedgerPosition, { scheduleId, scheduledFor }: Key): LedgerPosition {
  const slot = Date.parse(scheduledFor)
  return { scheduleId, slot: scheduleId === from.scheduleId && slot === from.slot ? slot + 1 : slot }
}

function inOrder(a: LedgerPosition, b: LedgerPosition): number {
  if (a.scheduleId !== b.scheduleId) return a.scheduleId < b.scheduleId ? -1 : 1
  return (a.slot ?? -Infinity) - (b.slot ?? -Infinity)
}
