import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type pg from 'pg'

import { textOf } from './migrate-modules.ts'
import { listStoredModules, type StoredModule } from './module-history.ts'
import { isOf } from './module-lint.ts'
import { schemaOf } from './pool.ts'
import { compareDumps, dumpText, readStatements, type SchemaDrift } from './schema-check.ts'

const EXPECTED = join(import.meta.dirname, 'schema.sql')

/**
 * Compares a database that has applied all migrations with the dump in `schema.sql`, and what belongs to a module with what the last
 * migration of the module left.
 */
export async function findDrift(pool: pg.Pool, schemaName?: string): Promise<SchemaDrift> {
  const schema = schemaOf(pool, schemaName)
  const modules = await listStoredModules(pool, schema)
  const statements = await readStatements(pool, schema)
  const own = statements.filter(({ subject }) => !modules.some(({ name }) => isOf(name, subject)))
  const drifts = [
    compareDumps(readFileSync(EXPECTED, 'utf8'), withoutReasons(dumpText(own), modules)),
    ...modules.map(({ name, objects }) => compareDumps(objects ?? '', textOf(name, statements))),
  ]
  return {
    missing: drifts.flatMap(({ missing }) => missing),
    unexpected: drifts.flatMap(({ unexpected }) => unexpected),
  }
}

/** The dump without the words that modules added to `run_reason`. */
function withoutReasons(dump: string, modules: readonly StoredModule[]): string {
  const added = new Set(modules.flatMap(({ reasons }) => reasons.map((reason) => `, '${reason}'`)))
  return dump.replace(/^create type run_reason as enum \(.*\);$/m, (line) =>
    line.replace(/, '[^']*'/g, (word) => (added.has(word) ? '' : word)),
  )
}
