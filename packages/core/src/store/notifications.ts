import { sql } from 'kysely'

import type { Db, Tx } from './database.ts'

/** Hints only: a worker that misses one finds the same by looking, a second later at most. */
export const AGENDA_CHANNEL = 'carillon_agenda'
export const CANCEL_CHANNEL = 'carillon_cancel'

/** Tells the workers which runs to cancel. Delivered when the transaction commits. */
export async function notifyCancel(db: Db | Tx, p: { runIds: readonly string[] }): Promise<void> {
  await sql`select pg_notify(${CANCEL_CHANNEL}, id::text) from unnest(${p.runIds}::uuid[]) as cancelled(id)`.execute(db)
}
