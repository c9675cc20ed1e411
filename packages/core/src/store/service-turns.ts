import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** A turn at a service that one worker at a time does. */
export interface ClaimedTurn {
  /** The transaction's now. */
  readonly now: number
  /** Where the service got to; null before its first slice. */
  readonly cursor: unknown
  /** When somebody asked for the work to be done now; null if nobody did. */
  readonly requestedAt: number | null
  /** Up to which instant the work is done; null if that is not known. */
  readonly reachedAt: number | null
  /** What `storeTurn` needs to tell this turn from another one. */
  readonly fence: TurnFence
}

/** Tells one turn from another, to the microsecond. As text: an instant in JavaScript ends at the millisecond. */
interface TurnFence {
  readonly workerId: string
  readonly until: string
  readonly requestedAt: string | null
}

/** What a look at a turn came to. */
export interface TurnLook {
  /** The transaction's now. */
  readonly now: number
  /** Undefined if the next slice is not due, or the turn is another worker's. */
  readonly turn: ClaimedTurn | undefined
  /** False if another worker has the turn. */
  readonly isOwn: boolean
  /** Up to which instant the work is done; null if that is not known. */
  readonly reachedAt: number | null
}

interface Row {
  now: Date
  holder_id: string | null
  reached_at: Date | null
  until: string | null
  requested_at: Date | null
  requested_text: string | null
  cursor: unknown
}

/**
 * Takes the turn at a service if its next slice is due and no other worker has it. The turn is this worker's own for so long; after
 * that another worker may take it, and `storeTurn` refuses what this one wanted to store.
 *
 * One read of one row by its key if there is nothing to do.
 */
export async function claimTurn(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<TurnLook> {
  const rows = await lookAtTurn(db, p)
  // Nobody has done it before.
  const [row] = rows.length > 0 ? rows : await insertTurn(db, p)
  if (row === undefined) throw new Error(`Postgres told nothing of the turn at ${p.name}`)
  const isOwn = row.until !== null || row.holder_id === p.workerId
  const known = { now: row.now.getTime(), isOwn, reachedAt: row.reached_at?.getTime() ?? null }
  if (row.until === null) return { ...known, turn: undefined }
  const fence = { workerId: p.workerId, until: row.until, requestedAt: row.requested_text }
  const requestedAt = row.requested_at?.getTime() ?? null
  const { now, reachedAt } = known
  return { ...known, turn: { now, cursor: row.cursor, requestedAt, reachedAt, fence } }
}

async function lookAtTurn(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<Row[]> {
  const { rows } = await sql<Row>`
    with claimed as (
      update carillon.service_turns as turns
      set worker_id = ${p.workerId}, until = ${nowOf(p.now)} + ${p.forMs} * interval '1 millisecond'
      where turns.name = (
        select free.name
        from carillon.service_turns as free
        where free.name = ${p.name}
          and free.next_at <= ${nowOf(p.now)}
          and (free.worker_id = ${p.workerId} or free.until is null or free.until <= ${nowOf(p.now)})
        for update skip locked
      )
      returning turns.until::text as until, turns.requested_at, turns.requested_at::text as requested_text, turns.cursor
    )
    select ${nowOf(p.now)} as now, turns.worker_id as holder_id, turns.reached_at, claimed.*
    from carillon.service_turns as turns
    left join claimed on true
    where turns.name = ${p.name}`.execute(db)
  return rows
}

async function insertTurn(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<Row[]> {
  await sql`
    insert into carillon.service_turns (name, next_at)
    values (${p.name}, ${nowOf(p.now)})
    on conflict do nothing`.execute(db)
  return lookAtTurn(db, p)
}

/** Where a service got to with a slice, and when the next one is due. */
export interface StoredTurn {
  readonly name: string
  readonly fence: TurnFence
  readonly cursor: unknown
  /** Null leaves it as it is. */
  readonly reachedAt: number | null
  /** Until the next slice; at once if somebody has asked meanwhile. */
  readonly restMs: number
  /** For how long after that the turn stays this worker's own. */
  readonly holdMs: number
  /** Whether what was asked for when the turn was claimed is done. */
  readonly isAnswered: boolean
  readonly now: Date | null
}

/** False if the turn is another worker's by now: then nothing was stored. */
export async function storeTurn(tx: Tx, p: StoredTurn): Promise<boolean> {
  const isSameRequest = sql`turns.requested_at is not distinct from ${p.fence.requestedAt}::timestamptz`
  const nextAt = sql`${nowOf(p.now)} + case when ${isSameRequest} then ${p.restMs}::double precision else 0 end
    * interval '1 millisecond'`
  const { rows } = await sql`
    update carillon.service_turns as turns
    set cursor = ${JSON.stringify(p.cursor)}::json,
      reached_at = coalesce(${p.reachedAt === null ? null : new Date(p.reachedAt)}::timestamptz, turns.reached_at),
      next_at = ${nextAt},
      until = ${nextAt} + ${p.holdMs} * interval '1 millisecond',
      requested_at = case when ${p.isAnswered} and ${isSameRequest} then null else turns.requested_at end
    where turns.name = ${p.name}
      and turns.worker_id = ${p.fence.workerId}
      and turns.until = ${p.fence.until}::timestamptz
    returning turns.name`.execute(tx)
  return rows.length === 1
}

/** Gives a turn back, so that another worker need not wait until it runs out. */
export async function releaseTurn(db: Db, p: { name: string; workerId: string }): Promise<void> {
  await sql`
    update carillon.service_turns as turns
    set worker_id = null, until = null
    where turns.name = ${p.name} and turns.worker_id = ${p.workerId}`.execute(db)
}

/** Where a service got to, whoever does it; undefined before its first slice. */
export async function readCursor(db: Db | Tx, p: { name: string }): Promise<unknown> {
  const { rows } = await sql<{ cursor: unknown }>`
    select turns.cursor from carillon.service_turns as turns where turns.name = ${p.name}`.execute(db)
  return rows[0]?.cursor
}

/** Up to which instant a service's work is done; null if that is not known. */
export async function readReached(db: Db | Tx, p: { name: string }): Promise<number | null> {
  const { rows } = await sql<{ reached_at: Date | null }>`
    select turns.reached_at from carillon.service_turns as turns where turns.name = ${p.name}`.execute(db)
  return rows[0]?.reached_at?.getTime() ?? null
}
