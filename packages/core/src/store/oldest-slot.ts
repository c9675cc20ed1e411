import { sql } from 'kysely'

import type { Db } from './database.ts'

/** The oldest slot that is still awaited; null if none is. Reads every active schedule: for upkeep, not for keepers. */
export async function findOldestNextSlot(db: Db): Promise<number | null> {
  const { rows } = await sql<{ oldest: Date | null }>`
    select min(schedules.next_slot_at) as oldest
    from carillon.schedules
    where schedules.state = 'active'`.execute(db)
  return rows[0]?.oldest?.getTime() ?? null
}
