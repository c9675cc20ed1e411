import type pg from 'pg'

import { CarillonError } from '../errors.ts'
import type { Migration } from './migration-files.ts'

/** A row of `carillon.migrations`: a step that this database has taken. */
export interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly checksum: string
  readonly appliedAt: Date
}

/** Asked before it is made, so that a role without the right to create can still see that nothing is to be done. */
export async function hasMigrationsTable(client: pg.ClientBase | pg.Pool): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('carillon.migrations') is not null as exists`,
  )
  return rows[0]?.exists === true
}

/** Beside the migrations, not one of them: it is what says which of them were applied. */
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

/** Refuses a database whose steps are not the first ones of this code, in order and unchanged. */
export function requireSameHistory(applied: readonly AppliedMigration[], migrations: readonly Migration[]): void {
  for (const [index, { number, name, checksum }] of applied.entries()) {
    if (number !== index + 1) {
      throw new CarillonError(
        'schema_changed',
        `the database took migration ${name}, but none before it: there is a gap`,
      )
    }
    const known = migrations[index]
    if (!known) {
      throw new CarillonError(
        'schema_too_new',
        `the database took migration ${name}, which this Carillon does not know: run the version that made it, or a later one`,
      )
    }
    if (known.checksum !== checksum || known.name !== name) {
      throw new CarillonError(
        'schema_changed',
        `migration ${known.name} was changed after the database had taken it (as ${name}): ` +
          'restore the file, and write a new migration for the change',
      )
    }
  }
}
