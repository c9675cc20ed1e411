import { hostname } from 'node:os'

import { Events, systemClock, Worker } from '@carillon/core'

import { createOpenFga } from './authorization/open-fga.ts'
import { endPool, openPool, requireCurrentSchema, requireDatabaseUrl, speakingOf } from './database.ts'
import { logEvents } from './event-log.ts'
import { openSecretsKeys } from './kept-secrets-key.ts'
import { createTargets, requireKnownKinds } from './known-targets.ts'
import { createLogger } from './logger.ts'
import { createMetrics } from './metrics.ts'
import { Readiness } from './readiness.ts'
import type { RunningService, StartOptions } from './running-service.ts'
import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'
import { startUp } from './start-up.ts'
import { serveWorkerHealth } from './worker-listener.ts'
import { openWorkerSecrets } from './worker-secrets.ts'

export interface StartWorkerOptions extends StartOptions {
  /** What it calls; it claims nothing else. */
  readonly targetKinds: readonly string[]
  /** How many runs it holds at most. @default 200 */
  readonly concurrency?: number
  /** Shown to people. @default the name of the machine */
  readonly name?: string
  /** Where it tells how it does, on the host of the settings; null: nowhere. @default 7401 */
  readonly metricsPort?: number | null
}

const METRICS_PORT_DEFAULT = 7401
/** Each run under way is a call and its connection. */
const CONCURRENCY_MAX = 100_000
/** A probe asks now and then; the worker has pools of its own. */
const PROBE_CONNECTIONS = 2

/** A worker alone, over a Postgres that others share. As many as wanted; none leads. */
export async function startWorker(settings: Settings, options: StartWorkerOptions): Promise<RunningService> {
  const { logger = createLogger(settings), name = hostname(), metricsPort = METRICS_PORT_DEFAULT } = options
  requireWholeNumber('--concurrency', options.concurrency ?? 1, 1, CONCURRENCY_MAX)
  requireWholeNumber('--metrics-port', metricsPort ?? 0, 0, 65_535)
  const databaseUrl = requireDatabaseUrl(settings, 'carillon worker')
  requireKnownKinds(options.targetKinds)
  const keys = openSecretsKeys(settings)
  const metrics = createMetrics()
  return startUp({ name: 'worker', logger, metrics, options }, async (start) => {
    const events = new Events()
    logEvents(events, logger)
    const pool = await openPool({
      url: databaseUrl,
      applicationName: `carillon ${name} probe`,
      maxConnections: PROBE_CONNECTIONS,
      onIdleError: (error) => events.emit('service.failed', { service: 'pool', error }),
    })
    start.defer(() => endPool(pool, systemClock))
    await requireCurrentSchema(pool, databaseUrl, 'carillon_worker')
    const secrets = await openWorkerSecrets(start, { url: databaseUrl, keys, events })
    start.checkpoint()
    const { concurrency } = options
    const worker = new Worker({
      databaseUrl,
      targets: createTargets(settings, secrets, options.targetKinds),
      name,
      events,
      meter: metrics.meter,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(settings.openFga === null ? {} : { authorization: createOpenFga(settings.openFga) }),
    })
    start.defer(() => worker.stop())
    const readiness = new Readiness({ pool, clock: systemClock, logger })
    const address = { host: settings.host, port: metricsPort ?? 0, remedy: 'choose another with --metrics-port' }
    const url = metricsPort === null ? '' : await serveWorkerHealth(start, address, { metrics, readiness, events })
    start.checkpoint()
    await speakingOf(databaseUrl, () => worker.start())
    readiness.started()
    return { url, signInUrl: null, dataDir: null, postgresPort: null, copiedProgram: null, isFirstStart: false }
  })
}

function requireWholeNumber(flag: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw new ServiceError('settings_invalid', `${flag}: expected a whole number from ${min} to ${max}, got ${value}`)
}
