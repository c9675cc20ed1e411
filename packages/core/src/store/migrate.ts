import type pg from 'pg'

import { CarillonError } from '../errors.ts'
import { lockMigrations } from './advisory-lock.ts'
import {
  createMigrationsTable,
  deleteAppliedMigration,
  dropMigrationsTable,
  hasMigrationsTable,
  insertAppliedMigration,
  listAppliedMigrations,
  requireSameHistory,
  type AppliedMigration,
} from './applied-migrations.ts'
import { createDb } from './database.ts'
import { readMigrations, type Migration } from './migration-files.ts'
import { readNow } from './now.ts'
import { ensurePartitions } from './partitions.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

interface MigrateOptions {
  /** Number of the last migration to apply. @default the last there is */
  readonly to?: number
  /** @default the migrations beside this file */
  readonly migrations?: readonly Migration[]
  /** Between two looks for workers that a migration would break. @default 1 */
  readonly leasePauseSeconds?: number
}

export interface MigrationStatus {
  readonly applied: readonly AppliedMigration[]
  /** Names of those that `migrate` would apply. */
  readonly pending: readonly string[]
}

/** What the driver waits for an answer at most, where the pool's own limit is meant for statements of the pipeline. */
const PATIENCE_MS = 2 ** 31 - 1
const LOCK_TIMEOUT_MS = 1000
const LOCK_PAUSE_SECONDS = 1
/** Some ten minutes. */
const LOCK_TRIES_MAX = 300
/** Longer than the lease of a worker that died: who still holds one after that lives. */
const LEASE_TRIES_MAX = 15
/** The migration that made the roles, and the function that makes months. */
const WALLS = 3

/**
 * Brings the schema up to this code, and makes the ledger's first months. Each migration is one transaction: a crash leaves whole
 * steps. Safe if several processes do it at once: one applies, the others find nothing left to do.
 */
export async function migrate(pool: pg.Pool, options: MigrateOptions = {}): Promise<{ applied: string[] }> {
  const { migrations = readMigrations() } = options
  const { to = migrations.length } = options
  requireKnown(to, migrations)
  const names: string[] = []
  for (;;) {
    const migration = await stepwise(pool, (client) => applyNext(client, migrations, to), options.leasePauseSeconds)
    if (!migration) break
    names.push(migration.name)
  }
  if (to >= WALLS) await ensureFirstMonths(pool)
  return { applied: names }
}

/**
 * Takes back every migration above `to`, the latest first, each in one transaction. With 0 Carillon's schema
 * goes too, and with it all schedules and the whole ledger.
 */
export async function migrateDown(
  pool: pg.Pool,
  options: { readonly to: number; readonly migrations?: readonly Migration[] },
): Promise<{ reverted: string[] }> {
  const { to, migrations = readMigrations() } = options
  requireKnown(to, migrations)
  const names: string[] = []
  for (;;) {
    const migration = await stepwise(pool, (client) => revertLast(client, migrations, to))
    if (!migration) return { reverted: names }
    names.push(migration.name)
  }
}

/** What the database has and what it lacks. Throws as `migrate` does if its history is not this code's. */
export async function migrationStatus(
  pool: pg.Pool,
  { migrations = readMigrations() }: Pick<MigrateOptions, 'migrations'> = {},
): Promise<MigrationStatus> {
  const applied = (await hasMigrationsTable(pool)) ? await listAppliedMigrations(pool) : []
  requireSameHistory(applied, migrations)
  return { applied, pending: migrations.slice(applied.length).map(({ name }) => name) }
}

async function applyNext(
  client: pg.ClientBase,
  migrations: readonly Migration[],
  to: number,
): Promise<Migration | undefined> {
  if (!(await hasMigrationsTable(client))) await createMigrationsTable(client)
  const applied = await listAppliedMigrations(client)
  requireSameHistory(applied, migrations)
  const migration = migrations[applied.length]
  if (!migration || migration.number > to) return undefined
  await runScript(client, migration.up)
  await insertAppliedMigration(client, migration)
  return migration
}

async function revertLast(
  client: pg.ClientBase,
  migrations: readonly Migration[],
  to: number,
): Promise<Migration | undefined> {
  if (!(await hasMigrationsTable(client))) return undefined
  const applied = await listAppliedMigrations(client)
  requireSameHistory(applied, migrations)
  const migration = applied.length > to ? migrations[applied.length - 1] : undefined
  if (migration) {
    await runScript(client, migration.down)
    await deleteAppliedMigration(client, migration)
  } else if (to === 0) {
    await dropMigrationsTable(client)
  }
  return migration
}

/** Many statements in one message; they name the schema of everything they touch, so nothing is looked up elsewhere. */
async function runScript(client: pg.ClientBase, text: string): Promise<void> {
  await client.query({ text, query_timeout: PATIENCE_MS } as pg.QueryConfig)
}

/**
 * A step that waits for a table keeps everybody who writes to it waiting behind it. So it gives up soon, lets them pass, and
 * tries again: a long report does not stop the pipeline, only the migration. A step that finds workers waits for leases of dead
 * ones to run out.
 * @throws CarillonError `workers_alive` if a worker lives that the step would break
 */
async function stepwise<Result>(
  pool: pg.Pool,
  work: (client: pg.ClientBase) => Promise<Result>,
  leasePauseSeconds = LOCK_PAUSE_SECONDS,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await inLockedTransaction(pool, work)
    } catch (error) {
      const state = sqlStateOf(error)
      if (state === SQLSTATE.workersAlive && tries >= LEASE_TRIES_MAX) {
        throw new CarillonError('workers_alive', (error as Error).message, { cause: error })
      }
      const isToBeTried = state === SQLSTATE.workersAlive || state === SQLSTATE.lockNotAvailable
      if (!isToBeTried || tries >= LOCK_TRIES_MAX) throw error
      const pauseSeconds = state === SQLSTATE.workersAlive ? leasePauseSeconds : LOCK_PAUSE_SECONDS
      await pool.query('select pg_sleep($1)', [pauseSeconds])
    }
  }
}

async function inLockedTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.ClientBase) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // Another process may be in the middle of a long migration: wait for it, whatever limits the pool sets.
    await client.query(`set local lock_timeout = 0; set local statement_timeout = 0; set local search_path = ''`)
    await lockMigrations(client)
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    const result = await work(client)
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    // Destroyed, which also rolls back: after an error nobody knows what state it is in.
    client.release(true)
    throw error
  }
}

/** This month and the next, so that whoever asks for a run before the first worker has started can have its line. */
async function ensureFirstMonths(pool: pg.Pool): Promise<void> {
  const db = createDb(pool)
  const now = new Date(await readNow(db, null))
  await ensurePartitions(db, { from: now, to: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)) })
}

function requireKnown(to: number, migrations: readonly Migration[]): void {
  if (Number.isInteger(to) && to >= 0 && to <= migrations.length) return
  throw new CarillonError('invalid_input', `expected the number of a migration, 0 to ${migrations.length}, got ${to}`)
}
