import { sql } from 'kysely'

import { activeLanes } from './active-lanes.ts'
import type { Db } from './database.ts'

/** When the schedule that is due first is due; null if none is active. Reads one schedule per lane. */
export async function findOldestDue(db: Db): Promise<number | null> {
  const { rows } = await sql<{ oldest: Date | null }>`
    with recursive ${activeLanes()}
    select min(first.due_at) as oldest
    from lanes
    cross join lateral (
      select schedules.due_at
      from carillon.schedules
      where schedules.state = 'active' and schedules.lane = lanes.lane
      order by schedules.due_at
      limit 1
    ) as first`.execute(db)
  return rows[0]?.oldest?.getTime() ?? null
}
