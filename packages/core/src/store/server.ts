import { sql } from 'kysely'

import type { Db } from './database.ts'

/** What a server says about itself. */
export interface Server {
  /** As Postgres writes it: 180001 is 18.1. */
  readonly versionNumber: number
  /** As people read it: `18.1`. */
  readonly version: string
  /** Its clock when it answered, to the microsecond: for telling how far apart clocks are. */
  readonly now: number
}

export async function askServer(db: Db, p: { now: Date | null }): Promise<Server> {
  const { rows } = await sql<{ version_number: number; version: string; now: number }>`
    select current_setting('server_version_num')::int as version_number, current_setting('server_version') as version,
      extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))::double precision * 1000 as now`.execute(
    db,
  )
  const [row] = rows
  if (row === undefined) throw new Error('Postgres said nothing about itself')
  return { versionNumber: row.version_number, version: row.version, now: row.now }
}

/** As whom statements are made, whoever logged in. */
export async function readActingUser(db: Db): Promise<{ readonly user: string }> {
  const { rows } = await sql<{ user: string }>`select current_user::text as "user"`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres did not say who asks')
  return row
}
