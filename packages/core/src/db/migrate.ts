import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'
import { createDb } from './database.ts'
import { migrateModules, modulesStatus, revertModule } from './migrate-modules.ts'
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
import { retryStep, runScript } from './migration-step.ts'
import type { ModuleSchema } from './module-history.ts'
import { ensurePartitions } from './months.ts'
import { readTransactionTime } from './now.ts'
import { schemaOf } from './pool.ts'

interface MigrateOptions {
  /** The schema that holds Carillon's tables. @default the schema of `createPool`, else 'carillon' */
  readonly schema?: string
  /** Number of the last migration to apply. @default the last of this version */
  readonly to?: number
  /** @default the migrations beside this file */
  readonly migrations?: readonly Migration[]
  /** Their migrations are applied after core's, and their reasons are added. @default none */
  readonly modules?: readonly ModuleSchema[]
  /** Pause before a migration checks again whether older workers are still alive. @default 1 */
  readonly leasePauseSeconds?: number
}

export interface MigrationStatus {
  readonly applied: readonly AppliedMigration[]
  /** Names of the migrations that `migrate` would apply. */
  readonly pending: readonly string[]
}

/** The number of the migration that creates the roles, and the function that creates months. */
const ROLES_MIGRATION = 3
/** The number of the migration that brings the histories of modules. */
const MODULES_MIGRATION = 16

/**
 * Applies all pending migrations, and creates the ledger's first months. Each migration is one transaction, so a crash leaves no
 * half step. Several processes may call it at once: one applies the migrations, the others wait and find none pending.
 */
export async function migrate(pool: pg.Pool, options: MigrateOptions = {}): Promise<{ applied: string[] }> {
  const { migrations = readMigrations(), modules = [], leasePauseSeconds } = options
  const { to = migrations.length } = options
  const schema = schemaOf(pool, options.schema)
  requireKnown(to, migrations)
  const names: string[] = []
  for (;;) {
    const migration = await retryStep(
      pool,
      schema,
      (client) => applyNext(client, schema, migrations, to),
      leasePauseSeconds,
    )
    if (!migration) break
    names.push(migration.name)
  }
  if (to >= ROLES_MIGRATION) await ensureFirstMonths(pool, schema)
  // Modules are made for the latest schema.
  if (to === migrations.length) names.push(...(await migrateModules(pool, modules, { schema, leasePauseSeconds })))
  return { applied: names }
}

interface MigrateDownOptions extends Pick<MigrateOptions, 'migrations' | 'modules' | 'schema'> {
  /** Number of the last migration to keep. */
  readonly to: number
  /** Reverts migrations of this module instead of core's. It must be one of `modules`. */
  readonly module?: string
}

/**
 * Reverts every migration above `to`, the highest number first, each in one transaction. 0 also drops Carillon's schema, with all schedules
 * and the whole ledger. Below the number that brings modules, the migrations of all `modules` are reverted first.
 * @throws CarillonError `invalid_input` for an unknown module, and `schema_changed` if the database has migrations of a module that is not
 * among `modules`, and would lose them
 */
export async function migrateDown(pool: pg.Pool, options: MigrateDownOptions): Promise<{ reverted: string[] }> {
  const { to, migrations = readMigrations(), modules = [] } = options
  const schema = schemaOf(pool, options.schema)
  if (options.module !== undefined) {
    const module = requireModule(options.module, modules)
    return { reverted: await revertModule(pool, module, { schema, to: requireWhole(to) }) }
  }
  requireKnown(to, migrations)
  const names: string[] = []
  for (const module of to < MODULES_MIGRATION ? modules.toReversed() : []) {
    names.push(...(await revertModule(pool, module, { schema, to: 0 })))
  }
  for (;;) {
    const migration = await retryStep(pool, schema, (client) => revertLast(client, schema, migrations, to))
    if (!migration) return { reverted: names }
    names.push(migration.name)
  }
}

/** The applied and the pending migrations. Throws like `migrate` if the database's history differs from this version's. */
export async function migrationStatus(
  pool: pg.Pool,
  options: Pick<MigrateOptions, 'migrations' | 'modules' | 'schema'> = {},
): Promise<MigrationStatus> {
  const { migrations = readMigrations(), modules = [] } = options
  const schema = schemaOf(pool, options.schema)
  const applied = (await hasMigrationsTable(pool, schema)) ? await listAppliedMigrations(pool, schema) : []
  requireSameHistory(applied, migrations)
  const ofModules = await modulesStatus(pool, modules, schema)
  return {
    applied: [...applied, ...ofModules.applied],
    pending: [...migrations.slice(applied.length).map(({ name }) => name), ...ofModules.pending],
  }
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

function requireModule(name: string, modules: readonly ModuleSchema[]): ModuleSchema {
  const module = modules.find((each) => each.name === name)
  if (module !== undefined) return module
  const known = modules.map((each) => each.name).join(', ') || 'none'
  throw new CarillonError('invalid_input', `expected the name of a module (${known}), got ${JSON.stringify(name)}`)
}

function requireWhole(to: number): number {
  if (Number.isInteger(to) && to >= 0) return to
  throw new CarillonError('invalid_input', `expected the number of a migration, 0 or more, got ${to}`)
}
