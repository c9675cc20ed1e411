import { fileURLToPath } from 'node:url'

import type pg from 'pg'

import { readMigrations, type AppliedMigration, type Migration } from './migration-history.ts'

/** What migrations need to know of a module. A manifest says it. */
export interface ModuleSchema {
  readonly name: string
  /** Folder of its numbered migrations. */
  readonly migrations?: URL
  /** Its reasons for refused runs, each with its sentence. */
  readonly reasons?: Readonly<Record<string, string>>
}

/** A row of the table `modules`: what a module has left in this database. */
export interface StoredModule {
  readonly name: string
  /** Every reason that it ever declared. */
  readonly reasons: readonly string[]
  /** Its tables and other objects as its last migration left them; null without a migration. */
  readonly objects: string | null
}

/** The migrations of a module, with its name in theirs: `billing/0001_accounts`. */
export function readModuleMigrations({ name: module, migrations }: ModuleSchema): Migration[] {
  if (migrations === undefined) return []
  return readMigrations(fileURLToPath(migrations)).map((each) => ({ ...each, name: `${module}/${each.name}` }))
}

/** False before migration 0016. */
async function hasModuleTables(client: pg.ClientBase | pg.Pool, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
    `${schema}.module_migrations`,
  ])
  return rows[0]?.exists === true
}

export async function listStoredModules(client: pg.ClientBase | pg.Pool, schema: string): Promise<StoredModule[]> {
  if (!(await hasModuleTables(client, schema))) return []
  const { rows } = await client.query<StoredModule>(
    `select name, reasons, objects from ${schema}.modules order by name collate "C"`,
  )
  return rows
}

/** The applied migrations of every module, by the name of the module. */
export async function listModuleHistories(
  client: pg.ClientBase | pg.Pool,
  schema: string,
): Promise<ReadonlyMap<string, readonly AppliedMigration[]>> {
  if (!(await hasModuleTables(client, schema))) return new Map()
  const { rows } = await client.query<{
    module: string
    number: number
    name: string
    checksum: string
    applied_at: Date
  }>(
    `select module, number, name, checksum, applied_at from ${schema}.module_migrations order by module collate "C", number`,
  )
  const histories = Map.groupBy(rows, ({ module }) => module)
  return new Map(
    [...histories].map(([module, history]) => [
      module,
      history.map(({ number, name, checksum, applied_at }) => ({ number, name, checksum, appliedAt: applied_at })),
    ]),
  )
}

export async function insertModuleMigration(
  client: pg.ClientBase,
  schema: string,
  module: string,
  { number, name, checksum }: Migration,
): Promise<void> {
  await client.query(
    `insert into ${schema}.module_migrations (module, number, name, checksum, applied_at)
     values ($1::text, $2::int, $3::text, $4::text, now())`,
    [module, number, name, checksum],
  )
}

export async function deleteModuleMigration(
  client: pg.ClientBase,
  schema: string,
  module: string,
  { number }: Migration,
): Promise<void> {
  await client.query(`delete from ${schema}.module_migrations where module = $1::text and number = $2::int`, [
    module,
    number,
  ])
}

/** Notes a module and adds its reasons to those that it declared earlier. */
export async function noteReasons(
  client: pg.ClientBase,
  schema: string,
  module: string,
  reasons: readonly string[],
): Promise<void> {
  await client.query(
    `insert into ${schema}.modules as known (name, reasons, updated_at)
     values ($1::text, $2::text[], now())
     on conflict (name) do update
     set reasons = array(select distinct reason from unnest(known.reasons || excluded.reasons) as reason order by reason),
       updated_at = excluded.updated_at`,
    [module, reasons],
  )
}

/** @param objects null once its last migration is reverted */
export async function noteObjects(
  client: pg.ClientBase,
  schema: string,
  module: string,
  objects: string | null,
): Promise<void> {
  await client.query(`update ${schema}.modules set objects = $2::text, updated_at = now() where name = $1::text`, [
    module,
    objects,
  ])
}

/** The words of the type `run_reason`, in their order. */
export async function listReasons(client: pg.ClientBase | pg.Pool, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ reason: string }>(
    `select enumlabel::text as reason
     from pg_catalog.pg_enum
     join pg_catalog.pg_type on pg_type.oid = enumtypid
     where typname = 'run_reason' and typnamespace = to_regnamespace($1)
     order by enumsortorder`,
    [schema],
  )
  return rows.map(({ reason }) => reason)
}

/**
 * Adds a word to the type `run_reason`. Postgres lets no statement of the same transaction use it. No run is rewritten, as for a type
 * `text` it would be.
 * @param reason checked by the manifest: letters, digits and underscores
 */
export async function addReason(client: pg.ClientBase, schema: string, reason: string): Promise<void> {
  await client.query(`alter type ${schema}.run_reason add value if not exists '${reason}'`)
}
