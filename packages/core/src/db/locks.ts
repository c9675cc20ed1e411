import type pg from 'pg'

import { columns, uuid } from './columns.ts'
import type { Tx } from './database.ts'
import { SCHEMA_DEFAULT } from './schema-name.ts'
import { rawSql, sql, type Sql } from './sql.ts'

/*
 * Every lock lasts for one transaction. The order is: schedules by id, then their runs, then grants. A transaction that moves a
 * waiting run, or decides by which runs are open, holds the lock of the run's schedule.
 */

/** Locks schedules, and waits for those that another transaction holds. */
export async function lockSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<void> {
  await sql`
    select from schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update`.execute(tx)
}

/** Locks those schedules that no other transaction holds. Returns their ids. */
export async function lockFreeSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<ReadonlySet<string>> {
  const rows = await sql`
    select ${columns('schedules', { id: uuid })}
    from schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update skip locked`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}

/**
 * The first keys of Carillon's advisory locks, which keep them apart from those of other users of the database. Each lock lasts for one
 * transaction, because a pooler would leave the lock of a session behind. The second key of `schema` is 1 for migrations, and 2 for the
 * database functions that create and drop months. The second key of the others is a hash. The database functions of quotas use 0x0ca2_1112.
 */
const LOCK_SPACES = { schema: 0x0ca2_1110, idempotencyKeys: 0x0ca2_1111, secrets: 0x0ca2_1113 } as const

/** The first key of an advisory lock. Each schema has its own, so two Carillons in one database do not wait for each other. */
export function lockSpace(of: keyof typeof LOCK_SPACES): Sql<never> {
  return rawSql(`${LOCK_SPACES[of]} # hashtext(current_schema()) # hashtext('${SCHEMA_DEFAULT}')`)
}

/** Waits until no other process migrates this schema, which need not exist yet. */
export async function lockMigrations(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1::int # hashtext($2) # hashtext($3), 1)', [
    LOCK_SPACES.schema,
    schema,
    SCHEMA_DEFAULT,
  ])
}
