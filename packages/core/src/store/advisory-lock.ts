import type pg from 'pg'

/**
 * Locks on things that are no rows, always for one transaction: a lock of a session is stranded by a pooler. The first
 * key is ours, so that other users of the same database do not meet us.
 */
export const ADVISORY_LOCK_SPACE = 0x0ca2_1110

/** Beside it, 2 is for changes of the ledger's months; the functions of the database that make them take it. */
const MIGRATIONS_LOCK = 1

/** Waits for the lock that one process at a time may migrate under. */
export async function lockMigrations(client: pg.ClientBase): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1::int, $2::int)', [ADVISORY_LOCK_SPACE, MIGRATIONS_LOCK])
}
