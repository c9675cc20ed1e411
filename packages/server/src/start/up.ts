import { hostname } from 'node:os'

import { createDb, Events, migrate, migrationStatus, systemClock, Worker, type AnyManifest } from '@carillon/core'
import type { Logger } from 'pino'

import { createOpenFga } from '../auth/open-fga.ts'
import { describeDataDirectory, openDataDirectory } from './data-directory.ts'
import { endPool, openPool, requireApiRole, withDatabaseErrors, type Pool } from './database.ts'
import { embeddedUrls, findCarillonOn, startEmbedded, type DatabaseUrls } from './embedded-postgres.ts'
import { openAdminKey, openSecretsKeys } from './keys.ts'
import { describeAddress, requireFreePort } from './listening.ts'
import { createLogger, logEvents } from './log.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { loadPlanned, openModuleDb, planModules, SERVER_NEEDS } from './modules.ts'
import { OperatorError } from './operator-error.ts'
import { Readiness } from './readiness.ts'
import { RestartLog } from './restart-log.ts'
import { addressOf, createServerParts, openApiPool, serveApi } from './server.ts'
import { startUp, type RunningCarillon, type StartOptions, type StartUp } from './service.ts'
import type { Settings } from './settings.ts'
import { openWorkerSecrets } from './worker.ts'

/** Starts everything in this process: Postgres unless DATABASE_URL names one, migrations, the API and a worker. */
export async function startEverything(settings: Settings, options: StartOptions = {}): Promise<RunningCarillon> {
  const { logger = createLogger(settings) } = options
  const { schema } = settings
  const metrics = createMetrics()
  return startUp({ name: 'everything', logger, metrics, options }, async (start) => {
    await requirePort(settings)
    const plan = await planModules(settings, SERVER_NEEDS)
    const database = await openDatabase(start, settings, { logger, metrics })
    start.checkpoint()
    const { adminKey, dataDir } = openAdminKey(settings)
    const secretsKeys = openSecretsKeys(settings)
    const events = new Events()
    logEvents(events, logger)
    const serverParts = createServerParts(events)
    const { isFirstStart, urls } = await prepare(database, settings, plan.manifests)
    start.checkpoint()
    const pool = await openApiPool(start, { url: urls.api, schema }, serverParts)
    await requireApiRole(pool, urls.api)
    const secrets = await openWorkerSecrets(start, { url: urls.worker, schema, keys: secretsKeys, events })
    start.checkpoint()
    const dbs = { api: createDb(pool), worker: await openModuleDb(start, { url: urls.worker, schema, events }) }
    const { meter } = metrics
    const { modules, targets } = await loadPlanned(start, { settings, plan, dbs, secrets, events, meter })
    start.checkpoint()
    let apiUrl = ''
    const worker = new Worker({
      databaseUrl: urls.worker,
      // The port may be any that is free, so the URL is known once the API listens. No run begins before.
      publicUrl: () => settings.publicUrl ?? apiUrl,
      schema,
      retentionDays: settings.retentionDays,
      transcriptBytes: settings.transcriptBytes,
      modules,
      name: hostname(),
      events,
      meter,
      otherParts: Object.values(serverParts),
      ...(settings.openFga === null ? {} : { authorization: createOpenFga(settings.openFga) }),
    })
    // Registered before the API listens, so that the worker stops after the API. The worker starts last: if the port is in use, no
    // target has been called.
    start.defer(() => worker.stop())
    const { isPostgresDown, notice } = database
    const readiness = new Readiness({ pool, clock: systemClock, logger, isPostgresDown, notice })
    const { reasons } = plan
    const opened = { settings, adminKey, secretsKeys, pool, targets, modules, reasons }
    const deps = { ...opened, events, serverParts, metrics, readiness, logger }
    const served = await serveApi(start, deps)
    apiUrl = served.url
    start.checkpoint()
    await withDatabaseErrors(urls.worker, () => worker.start())
    readiness.started()
    const { postgresPort, copiedProgram } = database
    return { ...served, dataDir: database.dataDir ?? dataDir, postgresPort, copiedProgram, isFirstStart }
  })
}

interface Database {
  readonly url: string
  readonly dataDir: string | null
  readonly postgresPort: number | null
  readonly copiedProgram: RunningCarillon['copiedProgram']
  /** True while the embedded Postgres is being restarted. */
  readonly isPostgresDown: () => boolean
  /** Reports a recent restart in one sentence; undefined without one. */
  readonly notice: () => string | undefined
}

async function openDatabase(
  start: StartUp,
  { databaseUrl, dataDir }: Settings,
  { logger, metrics: { meter } }: { readonly logger: Logger; readonly metrics: Metrics },
): Promise<Database> {
  if (databaseUrl !== null) {
    const none = { dataDir: null, postgresPort: null, copiedProgram: null }
    return { ...none, url: databaseUrl, isPostgresDown: () => false, notice: () => undefined }
  }
  const directory = openDataDirectory(dataDir)
  const restarts = new RestartLog({ clock: systemClock, logger, meter })
  const postgres = await startEmbedded(directory, restarts)
  start.defer(() => postgres.stop())
  const { url, port: postgresPort, copiedProgram } = postgres
  const health = { isPostgresDown: () => restarts.isDown, notice: () => restarts.notice }
  return { ...health, url, dataDir: directory.path, postgresPort, copiedProgram }
}

/** Migrates the schema and creates logins, which only the owner of the database may do. Then closes the owner's connections. */
async function prepare(
  { url, dataDir }: Database,
  { schema }: Settings,
  manifests: readonly AnyManifest[],
): Promise<{ isFirstStart: boolean; urls: DatabaseUrls }> {
  const owner = await openPool({ url, schema, applicationName: 'carillon migrations', maxConnections: 2 })
  try {
    const isFirstStart = await migrateUp(owner, url, manifests)
    // Logins are created on the embedded Postgres only. On any other the operator chooses them.
    return { isFirstStart, urls: dataDir === null ? { api: url, worker: url } : await embeddedUrls(owner, url) }
  } finally {
    await endPool(owner, systemClock)
  }
}

/** @returns whether the database was empty before */
async function migrateUp(pool: Pool, url: string, manifests: readonly AnyManifest[]): Promise<boolean> {
  return withDatabaseErrors(url, async () => {
    const { applied } = await migrationStatus(pool)
    await migrate(pool, { modules: manifests })
    return applied.length === 0
  })
}

/** Throws if the port is in use. Runs first: usually another Carillon uses it, whose embedded Postgres must not be touched. */
async function requirePort(settings: Settings): Promise<void> {
  const { host, port, dataDir } = settings
  try {
    await requireFreePort(addressOf(settings))
  } catch (error) {
    const pid = settings.databaseUrl === null ? findCarillonOn(describeDataDirectory(dataDir)) : undefined
    if (!(error instanceof OperatorError) || error.code !== 'port_in_use' || pid === undefined) throw error
    const message =
      `${describeAddress({ host, port })} is in use, and a Carillon (process ${pid}) already runs on ${dataDir}: ` +
      'use that one, or stop it first'
    throw new OperatorError('port_in_use', message, { cause: error })
  }
}
