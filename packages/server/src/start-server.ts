import { Events, systemClock } from '@carillon/core'

import { openAdminKey } from './admin-key.ts'
import { addressOf, serveApi } from './api-server.ts'
import { endPool, openPool, requireApiRole, requireCurrentSchema, requireDatabaseUrl } from './database.ts'
import { logEvents } from './event-log.ts'
import { openSecretsKeys } from './kept-secrets-key.ts'
import { createTargets } from './known-targets.ts'
import { requireFreePort } from './listening.ts'
import { createLogger } from './logger.ts'
import { createMetrics } from './metrics.ts'
import { Readiness } from './readiness.ts'
import type { RunningService, StartOptions } from './running-service.ts'
import { createServerParts } from './server-parts.ts'
import type { Settings } from './settings.ts'
import { startUp } from './start-up.ts'
import { SECRETS_OF_WORKERS } from './worker-secrets.ts'

/** The API alone, over a Postgres that others share. As many as wanted; it runs nothing, workers do. */
export async function startServer(settings: Settings, options: StartOptions = {}): Promise<RunningService> {
  const { logger = createLogger(settings) } = options
  const url = requireDatabaseUrl(settings, 'carillon server')
  const metrics = createMetrics()
  return startUp({ name: 'server', logger, metrics, options }, async (start) => {
    await requireFreePort(addressOf(settings))
    const { adminKey, dataDir } = openAdminKey(settings)
    const secretsKeys = openSecretsKeys(settings)
    const events = new Events()
    logEvents(events, logger)
    const serverParts = createServerParts(events)
    const pool = await openPool({
      url,
      applicationName: 'carillon server',
      onIdleError: (error) => void serverParts.pool.failed(error),
    })
    start.defer(() => endPool(pool, systemClock))
    await requireCurrentSchema(pool, url, 'carillon_api')
    await requireApiRole(pool, url)
    start.checkpoint()
    const readiness = new Readiness({ pool, clock: systemClock, logger })
    const targets = createTargets(settings, SECRETS_OF_WORKERS)
    const parts = { settings, adminKey, secretsKeys, pool, targets, events, serverParts, metrics, readiness, logger }
    const served = await serveApi(start, parts)
    readiness.started()
    return { ...served, dataDir, postgresPort: null, copiedProgram: null, isFirstStart: false }
  })
}
