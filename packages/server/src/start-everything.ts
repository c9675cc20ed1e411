import { hostname } from 'node:os'

import { Events, migrate, migrationStatus, systemClock, Worker } from '@carillon/core'
import type { Logger } from 'pino'

import { openAdminKey } from './admin-key.ts'
import { addressOf, serveApi } from './api-server.ts'
import { createOpenFga } from './authorization/open-fga.ts'
import { describeDataDirectory, openDataDirectory } from './data-directory.ts'
import { endPool, openPool, requireApiRole, speakingOf, type Pool } from './database.ts'
import { embeddedUrls, type DatabaseUrls } from './embedded-logins.ts'
import { findCarillonOn, startEmbedded } from './embedded-postgres.ts'
import { logEvents } from './event-log.ts'
import { openSecretsKeys } from './kept-secrets-key.ts'
import { createTargets } from './known-targets.ts'
import { placeOf, requireFreePort } from './listening.ts'
import { createLogger } from './logger.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { Readiness } from './readiness.ts'
import { RestartLog } from './restart-log.ts'
import type { RunningService, StartOptions } from './running-service.ts'
import { createServerParts } from './server-parts.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'
import { startUp, type StartUp } from './start-up.ts'
import { openWorkerSecrets } from './worker-secrets.ts'

/** Postgres unless DATABASE_URL names one, migrations, the API and a worker, in this process. */
export async function startEverything(settings: Settings, options: StartOptions = {}): Promise<RunningService> {
  const { logger = createLogger(settings) } = options
  const metrics = createMetrics()
  return startUp({ name: 'everything', logger, metrics, options }, async (start) => {
    await requirePort(settings)
    const database = await openDatabase(start, settings, { logger, metrics })
    start.checkpoint()
    const { adminKey, dataDir } = openAdminKey(settings)
    const secretsKeys = openSecretsKeys(settings)
    const events = new Events()
    logEvents(events, logger)
    const serverParts = createServerParts(events)
    const { isFirstStart, urls } = await prepare(database)
    start.checkpoint()
    const pool = await openPool({
      url: urls.api,
      applicationName: 'carillon server',
      onIdleError: (error) => void serverParts.pool.failed(error),
    })
    start.defer(() => endPool(pool, systemClock))
    await requireApiRole(pool, urls.api)
    const secrets = await openWorkerSecrets(start, { url: urls.worker, keys: secretsKeys, events })
    start.checkpoint()
    const targets = createTargets(settings, secrets)
    const worker = new Worker({
      databaseUrl: urls.worker,
      targets,
      name: hostname(),
      events,
      meter: metrics.meter,
      otherParts: Object.values(serverParts),
      ...(settings.openFga === null ? {} : { authorization: createOpenFga(settings.openFga) }),
    })
    // Before it starts, and before the API listens: it is to end after the API, and starts when nothing can fail any more
    // but itself. So a port that is taken calls no target.
    start.defer(() => worker.stop())
    const { isPostgresDown, notice } = database
    const readiness = new Readiness({ pool, clock: systemClock, logger, isPostgresDown, notice })
    const parts = { settings, adminKey, secretsKeys, pool, targets, events, serverParts, metrics, readiness, logger }
    const served = await serveApi(start, parts)
    start.checkpoint()
    await speakingOf(urls.worker, () => worker.start())
    readiness.started()
    const { postgresPort, copiedProgram } = database
    return { ...served, dataDir: database.dataDir ?? dataDir, postgresPort, copiedProgram, isFirstStart }
  })
}

interface Database {
  readonly url: string
  readonly dataDir: string | null
  readonly postgresPort: number | null
  readonly copiedProgram: RunningService['copiedProgram']
  /** True while the Postgres that it brought is started again. */
  readonly isPostgresDown: () => boolean
  /** That it was started again lately. */
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
  const told = { isPostgresDown: () => restarts.isDown, notice: () => restarts.notice }
  return { ...told, url, dataDir: directory.path, postgresPort, copiedProgram }
}

/** What needs the owner of the database, who is not needed any more afterwards. */
async function prepare({ url, dataDir }: Database): Promise<{ isFirstStart: boolean; urls: DatabaseUrls }> {
  const owner = await openPool({ url, applicationName: 'carillon migrations', maxConnections: 2 })
  try {
    const isFirstStart = await bringUpToDate(owner, url)
    // Of somebody else's Postgres we make no logins: whoever runs it gives the one that it wants.
    return { isFirstStart, urls: dataDir === null ? { api: url, worker: url } : await embeddedUrls(owner, url) }
  } finally {
    await endPool(owner, systemClock)
  }
}

/** @returns whether the database was empty before */
async function bringUpToDate(pool: Pool, url: string): Promise<boolean> {
  return speakingOf(url, async () => {
    const { applied } = await migrationStatus(pool)
    await migrate(pool)
    return applied.length === 0
  })
}

/** Asked first: the usual reason is that Carillon runs already, and then its Postgres must not be looked at either. */
async function requirePort(settings: Settings): Promise<void> {
  const { host, port, dataDir } = settings
  try {
    await requireFreePort(addressOf(settings))
  } catch (error) {
    const pid = settings.databaseUrl === null ? findCarillonOn(describeDataDirectory(dataDir)) : undefined
    if (!(error instanceof ServiceError) || error.code !== 'port_in_use' || pid === undefined) throw error
    const message =
      `${placeOf({ host, port })} is in use, and a Carillon (process ${pid}) already runs on ${dataDir}: ` +
      'use that one, or stop it first'
    throw new ServiceError('port_in_use', message, { cause: error })
  }
}
