import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'
import { SCHEMA_DEFAULT } from './schema-name.ts'

/** One numbered step of the schema, up and down. */
export interface Migration {
  readonly number: number
  /** File name without direction: `0001_schedules_and_ledger`. */
  readonly name: string
  readonly up: string
  readonly down: string
  /** SHA-256 of `up`, which is read with LF line ends, because git may change them. */
  readonly checksum: string
}

/** A row of the table `migrations`: a migration that this database has applied. */
export interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly checksum: string
  readonly appliedAt: Date
}

const MIGRATIONS_FOLDER = join(import.meta.dirname, 'migrations')
const FILE_NAME = /^((\d{4})_[a-z0-9_]+)\.up\.sql$/

/** The migrations of this version in order: 1, 2, 3 without a gap. */
export function readMigrations(folder = MIGRATIONS_FOLDER): Migration[] {
  const migrations = readdirSync(folder)
    .toSorted()
    .flatMap((file) => {
      const [, name, number] = FILE_NAME.exec(file) ?? []
      return name === undefined ? [] : [readMigration(folder, name, Number(number))]
    })
  const misplaced = migrations.find(({ number }, index) => number !== index + 1)
  if (misplaced) {
    throw new CarillonError('schema_changed', `migration ${misplaced.name} leaves a gap or takes a number twice`)
  }
  return migrations
}

function readMigration(folder: string, name: string, number: number): Migration {
  const read = (direction: 'up' | 'down'): string =>
    readFileSync(join(folder, `${name}.${direction}.sql`), 'utf8').replaceAll('\r\n', '\n')
  const up = read('up')
  return { number, name, up, down: read('down'), checksum: createHash('sha256').update(up).digest('hex') }
}

/**
 * The text of a migration for a schema of another name. Migrations 1 to 10 name the schema `carillon` and the roles that are named after it;
 * later ones name neither. The settings of a transaction, such as `carillon.tenant_id`, keep their names.
 */
export function inSchema(text: string, schema: string): string {
  if (schema === SCHEMA_DEFAULT) return text
  return text.replaceAll(JOBS_SCHEMA, NO_SCHEMA).replaceAll(SCHEMA_NAMES, schema)
}

/** The engine of versions before 0006 kept its jobs in this second schema, which 0006 drops. Only `carillon` ever had one. */
const JOBS_SCHEMA = /\bcarillon_jobs\b/g
/** Replaces that name in a schema of another name. No such schema can exist: Postgres refuses names that begin with `pg_`. */
const NO_SCHEMA = 'pg_no_jobs'

const SCHEMA_NAMES = new RegExp(
  [
    String.raw`(?<!current_setting\(')\bcarillon(?=\.)`,
    String.raw`\bcarillon(?=_(?:api|worker)\b)`,
    String.raw`(?<=\bschema (?:if exists )?)carillon\b`,
    String.raw`(?<=')carillon(?='::regnamespace)`,
    String.raw`(?<=schema = ')carillon(?=')`,
  ].join('|'),
  'g',
)

/** @throws CarillonError unless the applied migrations are the first ones of this version, in order and unchanged */
export function requireSameHistory(applied: readonly AppliedMigration[], migrations: readonly Migration[]): void {
  for (const [index, { number, name, checksum }] of applied.entries()) {
    if (number !== index + 1) {
      throw new CarillonError(
        'schema_changed',
        `the database has applied migration ${name}, but not the one before it: there is a gap`,
      )
    }
    const known = migrations[index]
    if (!known) {
      throw new CarillonError(
        'schema_too_new',
        `the database has applied migration ${name}, which this Carillon does not know: run the version that applied it, or a later one`,
      )
    }
    if (known.checksum !== checksum || known.name !== name) {
      throw new CarillonError(
        'schema_changed',
        `migration ${known.name} was changed after the database had applied it (as ${name}): ` +
          'restore the file, and write a new migration for the change',
      )
    }
  }
}

/** True if the table `migrations` exists. So a role that may not create anything can still read the status. */
export async function hasMigrationsTable(client: pg.ClientBase | pg.Pool, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
    `${schema}.migrations`,
  ])
  return rows[0]?.exists === true
}

/**
 * Creates the schema and its table `migrations`. No migration creates it, because it records which migrations were applied. An administrator
 * may have created the schema, for an owner that may not create any.
 * @throws CarillonError `schema_changed` if the schema contains tables or functions: it is somebody else's
 */
export async function createMigrationsTable(client: pg.ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query<{ is_there: boolean; is_empty: boolean }>(
    `select to_regnamespace($1) is not null as is_there,
       not exists (select from pg_catalog.pg_class where relnamespace = to_regnamespace($1))
       and not exists (select from pg_catalog.pg_proc where pronamespace = to_regnamespace($1)) as is_empty`,
    [schema],
  )
  if (rows[0]?.is_empty !== true) {
    throw new CarillonError(
      'schema_changed',
      `expected an empty schema ${schema} or one that Carillon has made, got one with other tables or functions: ` +
        'name another schema in CARILLON_SCHEMA',
    )
  }
  if (!rows[0].is_there) await client.query(`create schema ${schema}`)
  await client.query(`
    create table ${schema}.migrations (
      number integer primary key check (number > 0),
      name text not null,
      checksum text not null,
      applied_at timestamptz not null
    )`)
}

export async function dropMigrationsTable(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query(`drop table ${schema}.migrations; drop schema ${schema}`)
}

export async function listAppliedMigrations(
  client: pg.ClientBase | pg.Pool,
  schema: string,
): Promise<AppliedMigration[]> {
  const { rows } = await client.query<{ number: number; name: string; checksum: string; applied_at: Date }>(
    `select number, name, checksum, applied_at from ${schema}.migrations order by number`,
  )
  return rows.map(({ number, name, checksum, applied_at }) => ({ number, name, checksum, appliedAt: applied_at }))
}

export async function insertAppliedMigration(
  client: pg.ClientBase,
  schema: string,
  migration: Migration,
): Promise<void> {
  await client.query(
    `insert into ${schema}.migrations (number, name, checksum, applied_at) values ($1::int, $2::text, $3::text, now())`,
    [migration.number, migration.name, migration.checksum],
  )
}

export async function deleteAppliedMigration(
  client: pg.ClientBase,
  schema: string,
  migration: Migration,
): Promise<void> {
  await client.query(`delete from ${schema}.migrations where number = $1::int`, [migration.number])
}
