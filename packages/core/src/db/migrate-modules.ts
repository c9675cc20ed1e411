import type pg from 'pg'

import { CarillonError } from '../kernel/errors.ts'
import { requireSameHistory, type AppliedMigration, type Migration } from './migration-history.ts'
import { retryStep, runScript } from './migration-step.ts'
import { readCatalogue, readModulePolicies } from './module-catalogue.ts'
import {
  addReason,
  deleteModuleMigration,
  insertModuleMigration,
  listModuleHistories,
  listReasons,
  listStoredModules,
  noteObjects,
  noteReasons,
  readModuleMigrations,
  type ModuleSchema,
} from './module-history.ts'
import { isOf, lintModule } from './module-lint.ts'
import { dumpStatements, type DumpedStatement } from './schema-check.ts'

interface StepOptions {
  readonly schema: string
  readonly leasePauseSeconds?: number | undefined
}

/**
 * Applies the pending migrations of modules, one transaction each, and adds their reasons. Core's migrations are applied already.
 * @returns what was applied, in order
 */
export async function migrateModules(
  pool: pg.Pool,
  modules: readonly ModuleSchema[],
  { schema, leasePauseSeconds }: StepOptions,
): Promise<string[]> {
  const names: string[] = []
  for (const module of modules) {
    const migrations = readModuleMigrations(module)
    names.push(...(await retryStep(pool, schema, (client) => addReasons(client, schema, module), leasePauseSeconds)))
    for (;;) {
      const applied = await retryStep(
        pool,
        schema,
        (client) => applyNext(client, schema, module.name, migrations),
        leasePauseSeconds,
      )
      if (applied === undefined) break
      names.push(applied)
    }
  }
  return names
}

/** Reverts the migrations of a module above `to`, the highest number first, one transaction each. Its reasons stay. */
export async function revertModule(
  pool: pg.Pool,
  module: ModuleSchema,
  { schema, to }: { readonly schema: string; readonly to: number },
): Promise<string[]> {
  const migrations = readModuleMigrations(module)
  const names: string[] = []
  for (;;) {
    const reverted = await retryStep(pool, schema, (client) => revertLast(client, schema, module.name, migrations, to))
    if (reverted === undefined) return names
    names.push(reverted)
  }
}

/** What a database lacks of its modules, and the migrations that it has applied. */
export interface ModulesStatus {
  readonly applied: readonly AppliedMigration[]
  readonly pending: readonly string[]
}

/** Throws like `migrate` if the history of a module differs from that of its files. A module that is not among them is not compared. */
export async function modulesStatus(
  pool: pg.Pool,
  modules: readonly ModuleSchema[],
  schema: string,
): Promise<ModulesStatus> {
  const histories = await listModuleHistories(pool, schema)
  const stored = new Map((await listStoredModules(pool, schema)).map((module) => [module.name, module]))
  const pending = modules.flatMap((module) => {
    const migrations = readModuleMigrations(module)
    const applied = histories.get(module.name) ?? []
    requireSameHistory(applied, migrations)
    const known = stored.get(module.name)?.reasons ?? []
    const reasons = Object.keys(module.reasons ?? {}).filter((reason) => !known.includes(reason))
    return [
      ...reasons.map((reason) => reasonName(module.name, reason)),
      ...migrations.slice(applied.length).map(({ name }) => name),
    ]
  })
  return { applied: [...histories.values()].flat(), pending }
}

async function addReasons(
  client: pg.ClientBase,
  schema: string,
  { name, reasons = {} }: ModuleSchema,
): Promise<string[]> {
  const declared = Object.keys(reasons)
  const stored = (await listStoredModules(client, schema)).find((module) => module.name === name)
  const missing = declared.filter((reason) => stored?.reasons.includes(reason) !== true)
  if (stored !== undefined && missing.length === 0) return []
  const words = await listReasons(client, schema)
  for (const reason of missing) if (!words.includes(reason)) await addReason(client, schema, reason)
  await noteReasons(client, schema, name, declared)
  return missing.map((reason) => reasonName(name, reason))
}

/** How a reason is listed among migrations. */
function reasonName(module: string, reason: string): string {
  return `${module}/reason ${reason}`
}

async function applyNext(
  client: pg.ClientBase,
  schema: string,
  module: string,
  migrations: readonly Migration[],
): Promise<string | undefined> {
  const applied = (await listModuleHistories(client, schema)).get(module) ?? []
  requireSameHistory(applied, migrations)
  const migration = migrations[applied.length]
  if (migration === undefined) return undefined
  await change(client, schema, module, migration.name, migration.up)
  await insertModuleMigration(client, schema, module, migration)
  return migration.name
}

async function revertLast(
  client: pg.ClientBase,
  schema: string,
  module: string,
  migrations: readonly Migration[],
  to: number,
): Promise<string | undefined> {
  const applied = (await listModuleHistories(client, schema)).get(module) ?? []
  requireSameHistory(applied, migrations)
  const migration = applied.length > to ? migrations[applied.length - 1] : undefined
  if (migration === undefined) return undefined
  await change(client, schema, module, migration.name, migration.down)
  await deleteModuleMigration(client, schema, module, migration)
  if (applied.length === 1) await noteObjects(client, schema, module, null)
  return migration.name
}

/** Runs a script of a module, and checks what it made before anything is committed. */
async function change(
  client: pg.ClientBase,
  schema: string,
  module: string,
  migration: string,
  script: string,
): Promise<void> {
  await client.query(`select set_config('carillon.module', $1, true)`, [module])
  const policies = await readModulePolicies(client, module)
  const before = await dumpStatements(client, schema)
  const named = new Set((await readCatalogue(client)).objects.map(({ name }) => name))
  await runScript(client, script)
  await requireSameTransaction(client, module, migration)
  const after = await dumpStatements(client, schema)
  const catalogue = await readCatalogue(client)
  const strangers = catalogue.objects.filter(({ name }) => !named.has(name) && !isOf(module, name))
  const faults = [
    ...strangers.map(({ kind, name }) => `${kind} ${name}: expected a name that begins with ${module}_, got another`),
    ...foreignChanges(module, before, after),
    ...lintModule(module, catalogue, policies),
  ]
  if (faults.length > 0) throw refused(migration, faults)
  await noteObjects(client, schema, module, textOf(module, after))
}

/** The setting lasts as long as the transaction. */
async function requireSameTransaction(client: pg.ClientBase, module: string, migration: string): Promise<void> {
  const { rows } = await client.query<{ module: string | null }>(
    `select current_setting('carillon.module', true) as module`,
  )
  if (rows[0]?.module === module) return
  throw new CarillonError(
    'module_refused',
    `migration ${migration}: expected no end of its transaction, got one: remove the commit`,
  )
}

/** What a script changed of core or of other modules. */
function foreignChanges(
  module: string,
  before: readonly DumpedStatement[],
  after: readonly DumpedStatement[],
): string[] {
  const differs = (statements: readonly DumpedStatement[], others: readonly DumpedStatement[]): string[] => {
    const known = new Set(others.map(({ text }) => text))
    return statements
      .filter(({ subject, text }) => !isOf(module, subject) && !known.has(text))
      .map(({ subject }) => subject)
  }
  const subjects = new Set([...differs(before, after), ...differs(after, before)])
  return [...subjects].map((subject) => `${subject}: expected changes of what belongs to ${module}, got one of this`)
}

/** The part of a dump that belongs to a module. */
export function textOf(module: string, statements: readonly DumpedStatement[]): string {
  return statements
    .filter(({ subject }) => isOf(module, subject))
    .map(({ text }) => text)
    .join('\n')
}

const FAULTS_NAMED_MAX = 5

function refused(migration: string, faults: readonly string[]): CarillonError {
  const rest = faults.length > FAULTS_NAMED_MAX ? ` (and ${faults.length - FAULTS_NAMED_MAX} more)` : ''
  return new CarillonError(
    'module_refused',
    `migration ${migration} was rolled back: ${faults.slice(0, FAULTS_NAMED_MAX).join('; ')}${rest}`,
  )
}
