import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'

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

/** A row of `carillon.migrations`: a migration that this database has applied. */
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

/** True if `carillon.migrations` exists. So a role that may not create anything can still read the status. */
export async function hasMigrationsTable(client: pg.ClientBase | pg.Pool): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('carillon.migrations') is not null as exists`,
  )
  return rows[0]?.exists === true
}

/** Creates `carillon.migrations`. No migration creates it, because it records which migrations were applied. */
export async function createMigrationsTable(client: pg.ClientBase): Promise<void> {
  await client.query(`
    create schema if not exists carillon;
    create table carillon.migrations (
      number integer primary key check (number > 0),
      name text not null,
      checksum text not null,
      applied_at timestamptz not null
    )`)
}

export async function dropMigrationsTable(client: pg.ClientBase): Promise<void> {
  await client.query(`drop table carillon.migrations; drop schema carillon`)
}

export async function listAppliedMigrations(client: pg.ClientBase | pg.Pool): Promise<AppliedMigration[]> {
  const { rows } = await client.query<{ number: number; name: string; checksum: string; applied_at: Date }>(
    'select number, name, checksum, applied_at from carillon.migrations order by number',
  )
  return rows.map(({ number, name, checksum, applied_at }) => ({ number, name, checksum, appliedAt: applied_at }))
}

export async function insertAppliedMigration(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query(
    'insert into carillon.migrations (number, name, checksum, applied_at) values ($1::int, $2::text, $3::text, now())',
    [migration.number, migration.name, migration.checksum],
  )
}

export async function deleteAppliedMigration(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query('delete from carillon.migrations where number = $1::int', [migration.number])
}
