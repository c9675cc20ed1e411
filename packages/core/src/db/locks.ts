import { sql } from 'kysely'
import type pg from 'pg'

import type { Tx } from './database.ts'

/*
 * Every lock lasts for one transaction. The order is: schedules by id, then their runs, then grants. A transaction that moves a
 * waiting run, or decides by which runs are open, holds the lock of the run's schedule.
 */

/** Locks schedules, and waits for those that another transaction holds. */
export async function lockSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<void> {
  await sql`
    select from carillon.schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update`.execute(tx)
}

/** Locks those schedules that no other transaction holds. Returns their ids. */
export async function lockFreeSchedules(tx: Tx, p: { scheduleIds: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select schedules.id from carillon.schedules
    where schedules.id = any(${p.scheduleIds}::uuid[])
    order by schedules.id
    for update skip locked`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}

/**
 * The first key of Carillon's advisory locks, which keeps them apart from those of other users of the database. Each lasts for one
 * transaction, because a pooler would leave the lock of a session behind. Migrations use the second key 1, and the database functions
 * that create and drop months use 2. The numbers after this one are further first keys, whose second key is a hash.
 */
export const ADVISORY_LOCK_SPACE = 0x0ca2_1110

/** Waits until no other process migrates. */
export async function lockMigrations(client: pg.ClientBase): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1::int, 1)', [ADVISORY_LOCK_SPACE])
}
