import { sql } from 'kysely'
import pg from 'pg'

import type { Db } from './database.ts'

/** The Postgres role of the API. It owns nothing, and every row-level security policy applies to it (I9). */
export const API_DB_ROLE = 'carillon_api'
/** The Postgres role of workers. It sees all tenants, and may do only what the pipeline needs (I9). */
export const WORKER_DB_ROLE = 'carillon_worker'

/** What a Postgres server reports about itself. */
export interface PostgresInfo {
  /** As Postgres writes it: 180001 is 18.1. */
  readonly versionNumber: number
  /** As people read it: `18.1`. */
  readonly version: string
  /** Its clock when it answered, in epoch milliseconds to the microsecond; for measuring clock skew. */
  readonly now: number
}

/** @param p.now null in production; a test sets Postgres' clock by it */
export async function readPostgresInfo(db: Db, p: { now: Date | null }): Promise<PostgresInfo> {
  const { rows } = await sql<{ version_number: number; version: string; now: number }>`
    select current_setting('server_version_num')::int as version_number, current_setting('server_version') as version,
      extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))::double precision * 1000 as now`.execute(
    db,
  )
  const [row] = rows
  if (row === undefined) throw new Error('expected one row about the server, got none')
  return { versionNumber: row.version_number, version: row.version, now: row.now }
}

/** The role that statements run as, which may differ from the role that logged in. */
export async function readActingUser(db: Db): Promise<{ readonly user: string }> {
  const { rows } = await sql<{ user: string }>`select current_user::text as "user"`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('expected one row with the current user, got none')
  return row
}

/** A Postgres login that can act as one of the two roles above, and as no other. */
export interface Login {
  readonly user: string
  readonly password: string
}

/**
 * Gives the API and the workers a login each that owns nothing. An injected statement can then not switch back to a role that owns
 * the tables. Only for a Postgres that Carillon itself manages. The passwords change with each call, so none has to be stored.
 */
export async function renewLogins(pool: pg.Pool, password: () => string): Promise<{ api: Login; worker: Login }> {
  const renew = async (role: string): Promise<Login> => {
    const login = { user: `${role}_login`, password: password() }
    const { rowCount } = await pool.query('select from pg_catalog.pg_roles where rolname = $1', [login.user])
    if (rowCount === 0) await pool.query(`create role ${login.user} login in role ${role}`)
    await pool.query(`alter role ${login.user} password ${pg.escapeLiteral(login.password)}`)
    return login
  }
  return { api: await renew(API_DB_ROLE), worker: await renew(WORKER_DB_ROLE) }
}
