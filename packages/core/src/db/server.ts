import pg from 'pg'

import { columns, double, integer, text } from './columns.ts'
import type { Db } from './database.ts'
import { schemaOf } from './pool.ts'
import { apiRole, workerRole } from './schema-name.ts'
import { sql } from './sql.ts'

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
  const clock = sql`extract(epoch from coalesce(${p.now}::timestamptz, clock_timestamp()))`
  const server = columns('server', {
    versionNumber: integer.as(sql`current_setting('server_version_num')::int`),
    version: text.as(sql`current_setting('server_version')`),
    now: double.as(sql`${clock}::double precision * 1000`),
  })
  const [row] = await sql`select ${server}`.execute(db)
  if (row === undefined) throw new Error('expected one row about the server, got none')
  return row
}

/** The role that statements run as, which may differ from the role that logged in. */
export async function readActingUser(db: Db): Promise<string> {
  const [row] = await sql`select ${columns('session', { user: text.as(sql`current_user::text`) })}`.execute(db)
  if (row === undefined) throw new Error('expected one row with the current user, got none')
  return row.user
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
export async function renewLogins(
  pool: pg.Pool,
  password: () => string,
  schema?: string,
): Promise<{ api: Login; worker: Login }> {
  const owned = schemaOf(pool, schema)
  const renew = async (role: string): Promise<Login> => {
    const login = { user: `${role}_login`, password: password() }
    const { rowCount } = await pool.query('select from pg_catalog.pg_roles where rolname = $1', [login.user])
    const user = pg.escapeIdentifier(login.user)
    if (rowCount === 0) await pool.query(`create role ${user} login in role ${pg.escapeIdentifier(role)}`)
    await pool.query(`alter role ${user} password ${pg.escapeLiteral(login.password)}`)
    return login
  }
  return { api: await renew(apiRole(owned)), worker: await renew(workerRole(owned)) }
}
