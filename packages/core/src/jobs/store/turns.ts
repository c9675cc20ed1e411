import { columns, instant, json, text, uuid, type RowFrom } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** The right to do the next slice of a service, and what the slice needs. Instants are epoch milliseconds. */
export interface ClaimedTurn {
  /** The time of the claim, by Postgres' clock. */
  readonly now: number
  /** Where the last slice ended; null before the first. */
  readonly cursor: unknown
  /** When a person requested the work; null if it was not requested. */
  readonly requestedAt: number | null
  /** The work is done up to this instant; null if that is not known. */
  readonly reachedAt: number | null
  /** Lets `storeTurn` refuse a slice whose turn another worker has claimed meanwhile. */
  readonly fence: TurnFence
}

/** Identifies one claim of a turn. Its instants are text: Postgres stores microseconds, a JavaScript Date only milliseconds. */
interface TurnFence {
  readonly workerId: string
  readonly until: string
  readonly requestedAt: string | null
}

/** The result of an attempt to claim a turn. Instants are epoch milliseconds. */
export interface TurnClaim {
  /** The time of the claim, by Postgres' clock. */
  readonly now: number
  /** Undefined if the next slice is not due, or another worker has the turn. */
  readonly turn: ClaimedTurn | undefined
  /** True if this worker has the turn, even if no slice is due yet. */
  readonly isOwn: boolean
  /** The work is done up to this instant; null if that is not known. */
  readonly reachedAt: number | null
}

/** A turn as it is after an attempt to claim it. All columns of `claimed` are null if this claim failed. */
const TURN_COLUMNS = columns('turns', {
  holderId: uuid.orNull.as(sql`turns.worker_id`),
  reachedAt: instant.orNull,
}).with('claimed', {
  until: text.orNull,
  requestedAt: instant.orNull,
  requestedText: text.orNull,
  cursor: json().orNull,
})

type TurnRow = RowFrom<typeof TURN_COLUMNS> & { readonly now: number }

/**
 * Claims the turn of a service if its next slice is due and no other worker has the turn. The claim lasts `forMs`. After that another
 * worker may claim the turn, and `storeTurn` then refuses the slice of this worker.
 *
 * If no slice is due, this reads one row by its key.
 */
export async function claimTurn(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<TurnClaim> {
  const rows = await tryClaim(db, p)
  // There is no row before the first claim of a service.
  const [row] = rows.length > 0 ? rows : await insertAndClaim(db, p)
  if (row === undefined) throw new Error(`expected a row for the turn of ${p.name}, got none`)
  const { now, holderId, reachedAt, until, requestedAt, requestedText, cursor } = row
  const known = { now, isOwn: until !== null || holderId === p.workerId, reachedAt }
  if (until === null) return { ...known, turn: undefined }
  const fence = { workerId: p.workerId, until, requestedAt: requestedText }
  return { ...known, turn: { now, cursor, requestedAt, reachedAt, fence } }
}

async function tryClaim(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<TurnRow[]> {
  return sql`
    with claimed as (
      update service_turns as turns
      set worker_id = ${p.workerId}, until = ${nowOf(p.now)} + ${p.forMs} * interval '1 millisecond'
      where turns.name = (
        select free.name
        from service_turns as free
        where free.name = ${p.name}
          and free.next_at <= ${nowOf(p.now)}
          and (free.worker_id = ${p.workerId} or free.until is null or free.until <= ${nowOf(p.now)})
        for update skip locked
      )
      returning turns.until::text as until, turns.requested_at, turns.requested_at::text as requested_text, turns.cursor
    )
    select ${TURN_COLUMNS.with('turns', { now: instant.as(nowOf(p.now)) })}
    from service_turns as turns
    left join claimed on true
    where turns.name = ${p.name}`.execute(db)
}

async function insertAndClaim(
  db: Db,
  p: { name: string; workerId: string; forMs: number; now: Date | null },
): Promise<TurnRow[]> {
  await sql`
    insert into service_turns (name, next_at)
    values (${p.name}, ${nowOf(p.now)})
    on conflict do nothing`.execute(db)
  return tryClaim(db, p)
}

/** The end of a slice, and when the next one is due. */
export interface StoredTurn {
  readonly name: string
  readonly fence: TurnFence
  readonly cursor: unknown
  /** Null keeps the stored value. */
  readonly reachedAt: number | null
  /** Time until the next slice is due. If a request has come in since the claim, the next slice is due at once. */
  readonly restMs: number
  /** How long this worker keeps the turn once the next slice is due. */
  readonly holdMs: number
  /** True if the slice completes what was requested when the turn was claimed. */
  readonly isAnswered: boolean
  readonly now: Date | null
}

/** Returns false, and stores nothing, if another worker has claimed the turn meanwhile. */
export async function storeTurn(tx: Tx, p: StoredTurn): Promise<boolean> {
  const isSameRequest = sql`turns.requested_at is not distinct from ${p.fence.requestedAt}::timestamptz`
  const nextAt = sql`${nowOf(p.now)} + case when ${isSameRequest} then ${p.restMs}::double precision else 0 end
    * interval '1 millisecond'`
  const rows = await sql`
    update service_turns as turns
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

/** Releases a turn, so that another worker does not have to wait until it expires. */
export async function releaseTurn(db: Db, p: { name: string; workerId: string }): Promise<void> {
  await sql`
    update service_turns as turns
    set worker_id = null, until = null
    where turns.name = ${p.name} and turns.worker_id = ${p.workerId}`.execute(db)
}

/** The instant up to which the work of a service is done; null if that is not known. */
export async function readReached(db: Db | Tx, p: { name: string }): Promise<number | null> {
  const [turn] = await sql`
    select ${columns('turns', { reachedAt: instant.orNull })}
    from service_turns as turns
    where turns.name = ${p.name}`.execute(db)
  return turn?.reachedAt ?? null
}
