import {
  createDb,
  Doctor,
  Events,
  migrate,
  migrateDown,
  migrationStatus,
  SecretRotation,
  systemClock,
  workerRole,
  type AnyManifest,
  type Check,
  type DoctorDeps,
  type RotatedSecrets,
} from '@carillon/core'

import { findDataDirectory, openDataDirectory, type DataDirectory } from './data-directory.ts'
import { endPool, openPool, withDatabaseErrors, type Pool } from './database.ts'
import { findEmbedded, startEmbedded } from './embedded-postgres.ts'
import { findSecretsKeys, openSecretsKeys } from './keys.ts'
import { createMetrics } from './metrics.ts'
import { loadPlanned, NO_SECRETS, planModules, readManifests, SERVER_NEEDS } from './modules.ts'
import { OperatorError } from './operator-error.ts'
import type { Settings } from './settings.ts'

/** Which migrations the database has applied, and which are pending. */
export type MigrationStatus = Awaited<ReturnType<typeof migrationStatus>>

export interface Migrations {
  /** Applies all pending migrations. */
  up(): Promise<{ applied: string[] }>
  /**
   * Reverts every migration above `to`, of one module if it is named. 0 reverts all; without a module that deletes every schedule and the whole
   * ledger.
   */
  down(to: number, module?: string): Promise<{ reverted: string[] }>
  status(): Promise<MigrationStatus>
}

interface DatabaseOptions {
  /** True: a missing data directory is created. False: it is an error. */
  readonly canCreate: boolean
}

/** Migrates an installation's database. Throws OperatorError if it cannot be reached, or if other migrations were applied to it. */
export function migrationsOf(settings: Settings): Migrations {
  const run = async <Result>(
    options: DatabaseOptions,
    work: (pool: Pool, modules: readonly AnyManifest[]) => Promise<Result>,
  ): Promise<Result> => {
    const modules = await readManifests(settings)
    return withDatabase(settings, options, (pool, url) => withDatabaseErrors(url, () => work(pool, modules)))
  }
  return {
    up: () => run({ canCreate: true }, (pool, modules) => migrate(pool, { modules })),
    down: (to, module) =>
      run({ canCreate: false }, (pool, modules) => {
        if (module === undefined) return migrateDown(pool, { to, modules })
        requireModule(module, modules)
        return migrateDown(pool, { to, module, modules })
      }),
    status: () => run({ canCreate: false }, (pool, modules) => migrationStatus(pool, { modules })),
  }
}

function requireModule(name: string, modules: readonly AnyManifest[]): void {
  if (modules.some((module) => module.name === name)) return
  const known = modules.map((module) => module.name).join(', ')
  throw new OperatorError(
    'settings_invalid',
    `--module: expected the name of a module (${known}), got ${JSON.stringify(name)}`,
  )
}

/**
 * Checks an installation. Each check says what is wrong and what to do. Changes nothing. If the database cannot be reached, that
 * is one failed check.
 */
export async function examine(settings: Settings): Promise<Check[]> {
  try {
    return await withDatabase(settings, { canCreate: false }, (pool) => examineWithModules(pool, settings))
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return [{ name: 'database', status: 'failed', message: error.message }]
  }
}

/** If the modules cannot be loaded, that is one failed check. The other checks still run. */
async function examineWithModules(pool: Pool, settings: Settings): Promise<Check[]> {
  await using parts = new AsyncDisposableStack()
  const start = { defer: (stop: () => Promise<void> | void) => parts.defer(stop) }
  let manifests: readonly AnyManifest[] = []
  try {
    const plan = await planModules(settings, SERVER_NEEDS)
    ;({ manifests } = plan)
    const { meter } = createMetrics()
    const dbs = { worker: createDb(pool) }
    const { modules } = await loadPlanned(start, {
      settings,
      plan,
      dbs,
      secrets: NO_SECRETS,
      events: new Events(),
      meter,
    })
    return await examineWithKeys(pool, settings, { manifests, modules })
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    const fault: Check = { name: 'modules', status: 'failed', message: error.message }
    return [...(await examineWithKeys(pool, settings, { manifests })), fault]
  }
}

/** If a key that decrypts secrets cannot be read, that is one failed check. The other checks still run. */
async function examineWithKeys(
  pool: Pool,
  settings: Settings,
  modules: Pick<DoctorDeps, 'manifests' | 'modules'>,
): Promise<Check[]> {
  let keys: readonly Buffer[] | null
  try {
    keys = findSecretsKeys(settings)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    const fault: Check = { name: 'secrets', status: 'failed', message: error.message }
    return [...(await new Doctor({ pool, ...modules }).examine()), fault]
  }
  return new Doctor({ pool, keys, ...modules }).examine()
}

/**
 * Encrypts every secret of an installation with the first of its keys. Servers and workers may run meanwhile. To complete an
 * interrupted rotation, run it again.
 * @throws OperatorError if there is no key
 */
export async function rotateSecrets(settings: Settings): Promise<RotatedSecrets> {
  return withDatabase(settings, { canCreate: false }, async (_owner, url) => {
    const keys = openSecretsKeys(settings)
    if (keys === null) {
      throw new OperatorError(
        'settings_invalid',
        'CARILLON_SECRETS_KEY: expected the new key and those before it, got none',
      )
    }
    const { schema } = settings
    const pool = await openPool({ url, schema, applicationName: 'carillon secrets', role: workerRole(schema) })
    try {
      return await withDatabaseErrors(url, () => new SecretRotation({ db: createDb(pool), keys }).reencryptAll())
    } finally {
      await endPool(pool, systemClock)
    }
  })
}

/**
 * Connects to an installation's database, whether or not Carillon runs: to DATABASE_URL, else to the embedded Postgres. If that
 * does not run, it is started for the duration of the work.
 */
async function withDatabase<Result>(
  settings: Settings,
  options: DatabaseOptions,
  work: (pool: Pool, url: string) => Promise<Result>,
): Promise<Result> {
  const { databaseUrl } = settings
  if (databaseUrl !== null) return withPool(settings, databaseUrl, work)
  const directory = directoryOf(settings, options)
  const running = findEmbedded(directory)
  if (running !== undefined) return withPool(settings, running.url, work)
  await using postgres = await startEmbedded(directory)
  return await withPool(settings, postgres.url, work)
}

function directoryOf({ dataDir }: Settings, { canCreate }: DatabaseOptions): DataDirectory {
  if (canCreate) return openDataDirectory(dataDir)
  const directory = findDataDirectory(dataDir)
  if (directory !== undefined) return directory
  throw new OperatorError(
    'data_directory_missing',
    `expected a data directory at ${dataDir}, got none: \`carillon up\` creates one, CARILLON_DATA_DIR names another, and DATABASE_URL names a database elsewhere`,
  )
}

async function withPool<Result>(
  { schema }: Settings,
  url: string,
  work: (pool: Pool, url: string) => Promise<Result>,
): Promise<Result> {
  const pool = await openPool({ url, schema, applicationName: 'carillon command' })
  try {
    return await work(pool, url)
  } finally {
    await endPool(pool, systemClock)
  }
}
