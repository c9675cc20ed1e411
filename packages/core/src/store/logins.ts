import pg from 'pg'

/** How somebody logs in who acts as one of the two roles, and as nobody else. */
export interface Login {
  readonly user: string
  readonly password: string
}

/** What each logs in as. */
const USERS = {
  api: ['carillon_api_login', 'carillon_api'],
  worker: ['carillon_worker_login', 'carillon_worker'],
} as const

/**
 * Gives the API and the workers of a Postgres of our own logins that own nothing: who managed to inject a statement could not
 * go back to a role that does. With new passwords each time, so that none has to be kept.
 */
export async function renewLogins(pool: pg.Pool, password: () => string): Promise<{ api: Login; worker: Login }> {
  const renew = async ([user, role]: readonly [string, string]): Promise<Login> => {
    const login = { user, password: password() }
    const { rowCount } = await pool.query('select from pg_catalog.pg_roles where rolname = $1', [user])
    if (rowCount === 0) await pool.query(`create role ${user} login in role ${role}`)
    await pool.query(`alter role ${user} password ${pg.escapeLiteral(login.password)}`)
    return login
  }
  return { api: await renew(USERS.api), worker: await renew(USERS.worker) }
}
