import { messageOf } from '@carillon/api'
import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'
import { createDb } from './database.ts'
import { lockMigrations } from './locks.ts'
import {
  createMigrationsTable,
  deleteAppliedMigration,
  dropMigrationsTable,
  hasMigrationsTable,
  inSchema,
  insertAppliedMigration,
  listAppliedMigrations,
  readMigrations,
  requireSameHistory,
  type AppliedMigration,
  type Migration,
} from './migration-history.ts'
import { ensurePartitions } from './months.ts'
import { readTransactionTime } from './now.ts'
import { schemaOf } from './pool.ts'
import { searchPath } from './schema-name.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

interface MigrateOptions {
  /** The schema that holds Carillon's tables. @default the schema of `createPool`, else 'carillon' */
  readonly schema?: string
  /** Number of the last migration to apply. @default the last of this version */
  readonly to?: number
  /** @default the migrations beside this file */
  readonly migrations?: readonly Migration[]
  /** Pause before a migration checks again whether older workers are still alive. @default 1 */
  readonly leasePauseSeconds?: number
}

export interface MigrationStatus {
  readonly applied: readonly AppliedMigration[]
  /** Names of the migrations that `migrate` would apply. */
  readonly pending: readonly string[]
}

/** The longest time limit that the driver knows. A migration may take long; the pool's own limit is for the pipeline's statements. */
const SCRIPT_TIMEOUT_MS = 2 ** 31 - 1
/** How long a migration waits for a lock on a table before it gives up this try. */
const LOCK_TIMEOUT_MS = 1000
/** The pause before the next try. */
const LOCK_PAUSE_SECONDS = 1
/** How often a migration tries to get its locks: for about ten minutes. Then it fails. */
const LOCK_TRIES_MAX = 300
/** How often a migration checks for older workers. All checks take longer than a lease, so a worker that still has its lease is alive. */
const LEASE_TRIES_MAX = 15
/** The number of the migration that creates the roles, and the function that creates months. */
const ROLES_MIGRATION = 3

/**
 * Applies all pending migrations, and creates the ledger's first months. Each migration is one transaction, so a crash leaves no
 * half step. Several processes may call it at once: one applies the migrations, the others wait and find none pending.
 */
export async function migrate(pool: pg.Pool, options: MigrateOptions = {}): Promise<{ applied: string[] }> {
  const { migrations = readMigrations() } = options
  const { to = migrations.length } = options
  const schema = schemaOf(pool, options.schema)
  requireKnown(to, migrations)
  const names: string[] = []
  for (;;) {
    const migration = await retryStep(
      pool,
      schema,
      (client) => applyNext(client, schema, migrations, to),
      options.leasePauseSeconds,
    )
    if (!migration) break
    names.push(migration.name)
  }
  if (to >= ROLES_MIGRATION) await ensureFirstMonths(pool, schema)
  return { applied: names }
}

/**
 * Reverts every migration above `to`, the highest number first, each in one transaction. 0 also drops Carillon's schema, with all schedules
 * and the whole ledger.
 */
export async function migrateDown(
  pool: pg.Pool,
  options: { readonly to: number } & Pick<MigrateOptions, 'migrations' | 'schema'>,
): Promise<{ reverted: string[] }> {
  const { to, migrations = readMigrations() } = options
  const schema = schemaOf(pool, options.schema)
  requireKnown(to, migrations)
  const names: string[] = []
  for (;;) {
    const migration = await retryStep(pool, schema, (client) => revertLast(client, schema, migrations, to))
    if (!migration) return { reverted: names }
    names.push(migration.name)
  }
}

/** The applied and the pending migrations. Throws like `migrate` if the database's history differs from this version's. */
export async function migrationStatus(
  pool: pg.Pool,
  options: Pick<MigrateOptions, 'migrations' | 'schema'> = {},
): Promise<MigrationStatus> {
  const { migrations = readMigrations() } = options
  const schema = schemaOf(pool, options.schema)
  const applied = (await hasMigrationsTable(pool, schema)) ? await listAppliedMigrations(pool, schema) : []
  requireSameHistory(applied, migrations)
  return { applied, pending: migrations.slice(applied.length).map(({ name }) => name) }
}

/** Says which migrations a database lacks, and what to do. */
export function missingMigrationsText(pending: readonly string[], database = 'the database'): string {
  return `${database} lacks ${pending.join(', ')}: run \`carillon migrate up\``
}

async function applyNext(
  client: pg.ClientBase,
  schema: string,
  migrations: readonly Migration[],
  to: number,
): Promise<Migration | undefined> {
  if (!(await hasMigrationsTable(client, schema))) await createMigrationsTable(client, schema)
  const applied = await listAppliedMigrations(client, schema)
  requireSameHistory(applied, migrations)
  const migration = migrations[applied.length]
  if (!migration || migration.number > to) return undefined
  await runScript(client, inSchema(migration.up, schema))
  await insertAppliedMigration(client, schema, migration)
  return migration
}

async function revertLast(
  client: pg.ClientBase,
  schema: string,
  migrations: readonly Migration[],
  to: number,
): Promise<Migration | undefined> {
  if (!(await hasMigrationsTable(client, schema))) return undefined
  const applied = await listAppliedMigrations(client, schema)
  requireSameHistory(applied, migrations)
  const migration = applied.length > to ? migrations[applied.length - 1] : undefined
  if (migration) {
    await runScript(client, inSchema(migration.down, schema))
    await deleteAppliedMigration(client, schema, migration)
  } else if (to === 0) {
    await dropMigrationsTable(client, schema)
  }
  return migration
}

/** Sends all statements in one message. */
async function runScript(client: pg.ClientBase, text: string): Promise<void> {
  await client.query({ text, query_timeout: SCRIPT_TIMEOUT_MS } as pg.QueryConfig)
}

/**
 * Runs one step and retries it. A step that waits for a lock on a table blocks every writer behind it, so it gives up after a second,
 * lets them pass, and tries again: a long report delays the migration, not the pipeline. A step that finds older workers alive
 * waits until the leases of dead ones expire.
 * @throws CarillonError `workers_alive` if a worker is alive that the step would break
 */
async function retryStep<Result>(
  pool: pg.Pool,
  schema: string,
  work: (client: pg.ClientBase) => Promise<Result>,
  leasePauseSeconds = LOCK_PAUSE_SECONDS,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await inLockedTransaction(pool, schema, work)
    } catch (error) {
      const state = sqlStateOf(error)
      if (state === SQLSTATE.workersAlive && tries >= LEASE_TRIES_MAX) {
        throw new CarillonError('workers_alive', messageOf(error), { cause: error })
      }
      const isRetryable = state === SQLSTATE.workersAlive || state === SQLSTATE.lockNotAvailable
      if (!isRetryable || tries >= LOCK_TRIES_MAX) throw error
      const pauseSeconds = state === SQLSTATE.workersAlive ? leasePauseSeconds : LOCK_PAUSE_SECONDS
      await pool.query('select pg_sleep($1)', [pauseSeconds])
    }
  }
}

async function inLockedTransaction<Result>(
  pool: pg.Pool,
  schema: string,
  work: (client: pg.ClientBase) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // Another process may be running a long migration. This one waits for it, whatever time limits the pool sets.
    await client.query(
      `set local lock_timeout = 0; set local statement_timeout = 0; set local search_path = ${searchPath(schema)}`,
    )
    await lockMigrations(client, schema)
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    const result = await work(client)
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    // Discards the connection, which also rolls back: after an error its state is unknown.
    client.release(true)
    throw error
  }
}

/** Creates the ledger's partitions of this month and the next, so that it can record a run before the first worker has started. */
async function ensureFirstMonths(pool: pg.Pool, schema: string): Promise<void> {
  const db = createDb(pool, { schema })
  const now = new Date(await readTransactionTime(db, null))
  await ensurePartitions(db, { from: now, to: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)) })
}

function requireKnown(to: number, migrations: readonly Migration[]): void {
  if (Number.isInteger(to) && to >= 0 && to <= migrations.length) return
  throw new CarillonError('invalid_input', `expected the number of a migration, 0 to ${migrations.length}, got ${to}`)
}
