import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/** Hints only: a worker that misses one finds the same by looking, a second later at most. */
export const AGENDA_CHANNEL = 'carillon_agenda'
export const CANCEL_CHANNEL = 'carillon_cancel'
/** How far ahead keepers look: what comes due sooner is worth a notification. */
export const NOTIFY_WITHIN_MS = 1000

/**
 * Tells the workers that something comes due in these lanes, sooner than a look may find it. Once per transaction: several
 * lanes are told as any. Delivered when the transaction commits.
 */
export async function notifyDue(tx: Tx, p: { lanes: readonly string[] }): Promise<void> {
  const [lane, ...others] = new Set(p.lanes)
  if (lane === undefined) return
  await sql`select pg_notify(${AGENDA_CHANNEL}, ${others.length === 0 ? lane : ''})`.execute(tx)
}

/** Tells the workers that a waiting run is due. */
export async function notifyDueRun(tx: Tx, p: { runId: string }): Promise<void> {
  await sql`select pg_notify(${AGENDA_CHANNEL}, runs.lane) from carillon.runs where runs.id = ${p.runId}`.execute(tx)
}

/** Tells the workers which runs to cancel. Delivered when the transaction commits. */
export async function notifyCancel(db: Db | Tx, p: { runIds: readonly string[] }): Promise<void> {
  await sql`select pg_notify(${CANCEL_CHANNEL}, id::text) from unnest(${p.runIds}::uuid[]) as cancelled(id)`.execute(db)
}
