import { sql } from 'kysely'

import type { Tx } from './database.ts'

/**
 * Locks schedules for the rest of the transaction. The lock order of this code base: schedules by id, then their runs.
 * Whatever moves a waiting run, or decides by what runs are open, holds its schedule's lock.
 */
export async function lockSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<void> {
  await sql`
    select from carillon.schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update`.execute(tx)
}

/** Locks those of them that nobody holds, and says which. */
export async function lockFreeSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select schedules.id from carillon.schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update skip locked`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}
