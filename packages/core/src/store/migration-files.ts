import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { CarillonError } from '../errors.ts'

/** One numbered step of the schema, there and back. */
export interface Migration {
  readonly number: number
  /** File name without direction: `0001_schedules_and_ledger`. */
  readonly name: string
  readonly up: string
  readonly down: string
  /** Of the way up, line ends aside: git may change those. */
  readonly checksum: string
}

const MIGRATIONS_FOLDER = join(import.meta.dirname, 'migrations')
const FILE_NAME = /^((\d{4})_[a-z0-9_]+)\.up\.sql$/

/** The migrations this code brings, in order: 1, 2, 3 without a gap. */
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
  const [up, down] = ['up', 'down'].map((direction) =>
    readFileSync(join(folder, `${name}.${direction}.sql`), 'utf8').replaceAll('\r\n', '\n'),
  ) as [string, string]
  return { number, name, up, down, checksum: createHash('sha256').update(up).digest('hex') }
}
