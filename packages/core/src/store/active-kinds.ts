import { sql } from 'kysely'

import type { Db } from './database.ts'

/** How many active schedules there are of a kind of target. */
export interface ActiveKind {
  readonly targetKind: string
  readonly schedules: number
}

/** Reads every active schedule: for a diagnosis, not for a pipeline. */
export async function countActiveKinds(db: Db): Promise<ActiveKind[]> {
  const { rows } = await sql<{ target_kind: string; schedules: number }>`
    select schedules.target_kind, count(*)::int as schedules
    from carillon.schedules
    where schedules.state = 'active'
    group by schedules.target_kind
    order by schedules.target_kind`.execute(db)
  return rows.map((row) => ({ targetKind: row.target_kind, schedules: row.schedules }))
}
