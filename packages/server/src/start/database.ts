import { messageOf } from '@carillon/api'
import {
  apiRole,
  CarillonError,
  createDb,
  createPool,
  EventLog,
  migrationStatus,
  missingMigrationsText,
  type AnyManifest,
  type Clock,
  type SeverablePool,
} from '@carillon/core'

import { codeOf, OperatorError } from './operator-error.ts'
import type { Settings } from './settings.ts'

export type Pool = SeverablePool

const CLOSE_LIMIT_MS = 2000

interface OpenOptions {
  readonly url: string
  /** The schema that holds Carillon's tables. */
  readonly schema: string
  /** The name of the connections in pg_stat_activity. */
  readonly applicationName: string
  /** @default 10 */
  readonly maxConnections?: number
  /** The Postgres role that the connections assume. @default the role of DATABASE_URL */
  readonly role?: string
  readonly onIdleError?: (error: Error) => void
}

/** SQLSTATEs with which Postgres refuses `set role`: permission denied (42501), no such role (22023). */
const ROLE_REFUSALS: readonly (string | undefined)[] = ['42501', '22023']

/** @throws OperatorError if DATABASE_URL is not set: several processes cannot share the embedded Postgres of one of them */
export function requireDatabaseUrl({ databaseUrl }: Settings): string {
  if (databaseUrl !== null) return databaseUrl
  throw new OperatorError(
    'database_required',
    'DATABASE_URL: expected the Postgres that servers and workers share, got nothing: ' +
      'set it, or run `carillon up` for everything in one process',
  )
}

/**
 * Opens a pool and one connection to prove that the database is reachable. Statements are not prepared, so that a pooler such
 * as PgBouncer may switch connections between transactions.
 */
export async function openPool({ url, ...options }: OpenOptions): Promise<Pool> {
  const pool = createPool({ connectionString: url, isPrepared: false, ...options })
  try {
    const client = await pool.connect()
    client.release()
    return pool
  } catch (error) {
    await pool.end()
    if (options.role !== undefined && isRoleRefusal(error)) throw roleMissing(options.role, url, error)
    throw new OperatorError(
      'database_unreachable',
      `the ${describeDatabase(url)} cannot be reached: ${driverMessage(error)}; check DATABASE_URL`,
      { cause: error },
    )
  }
}

/** Closes a pool. Lets running statements finish, but cuts the connections if Postgres does not answer in time. */
export async function endPool(pool: Pool, clock: Clock): Promise<void> {
  const cancel = clock.after(CLOSE_LIMIT_MS, () => pool.sever())
  try {
    await pool.end()
  } finally {
    cancel()
  }
}

/**
 * @param p.role the role that the error names if this process may not read the schema
 * @param p.manifests those of all modules of the installation
 * @throws OperatorError if the database lacks migrations of this version
 */
export async function requireCurrentSchema(
  pool: Pool,
  url: string,
  { role, manifests }: { readonly role: string; readonly manifests: readonly AnyManifest[] },
): Promise<void> {
  const { pending } = await actingAs(role, url, () => migrationStatus(pool, { modules: manifests }))
  if (pending.length === 0) return
  throw new OperatorError('schema_outdated', missingMigrationsText(pending, `the ${describeDatabase(url)}`))
}

/**
 * Runs one read in the role in which every request runs, so that a server that could answer no request does not start.
 * @throws OperatorError if the role of DATABASE_URL may not assume the role of the API
 */
export async function requireApiRole(pool: Pool, url: string): Promise<void> {
  await actingAs(apiRole(pool.schema), url, () => new EventLog({ db: createDb(pool) }).tail())
}

async function actingAs<Result>(role: string, url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isRoleRefusal(error) ? roleMissing(role, url, error) : asOperatorError(error, url)
  }
}

function isRoleRefusal(error: unknown): boolean {
  return ROLE_REFUSALS.includes(codeOf(error))
}

function roleMissing(role: string, url: string, cause: unknown): OperatorError {
  const user = decodeURIComponent(new URL(url).username) || 'the role of DATABASE_URL'
  return new OperatorError(
    'database_unreachable',
    `expected a user of the ${describeDatabase(url)} that may act as ${role}, got ${user}: ` +
      `have the owner of the database run \`grant ${role} to "${user}"\``,
    { cause },
  )
}

/** Runs work on a database and turns its errors into OperatorErrors that name the database. */
export async function withDatabaseErrors<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw asOperatorError(error, url)
  }
}

function asOperatorError(error: unknown, url: string): unknown {
  if (error instanceof OperatorError) return error
  if (!(error instanceof CarillonError)) {
    const message = `the ${describeDatabase(url)} cannot be used: ${driverMessage(error)}; check DATABASE_URL`
    return new OperatorError('database_unreachable', message, { cause: error })
  }
  switch (error.code) {
    case 'role_refused':
      return new OperatorError('database_unreachable', `the ${describeDatabase(url)}: ${error.message}`, {
        cause: error,
      })
    case 'schema_outdated':
    case 'schema_too_new':
    case 'schema_changed':
    case 'workers_alive':
    case 'module_refused':
      return new OperatorError(error.code, error.message, { cause: error })
    default:
      return error
  }
}

/** Names a database without its password. */
function describeDatabase(databaseUrl: string): string {
  const url = new URL(databaseUrl)
  const host = decodeURIComponent(url.hostname) || url.searchParams.get('host') || 'localhost'
  const name = decodeURIComponent(url.pathname.slice(1) || url.username || 'postgres')
  return `database ${name} at ${host}:${url.port === '' ? 5432 : url.port}`
}

/** If a host has several addresses, the driver throws an AggregateError without a message, with one error per address. */
function driverMessage(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return driverMessage(error.errors[0])
  return messageOf(error)
}
