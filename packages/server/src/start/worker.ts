import { hostname } from 'node:os'

import { SERVICE_DEFAULTS } from '@carillon/api'
import {
  BuiltInSecretStore,
  CarillonError,
  createDb,
  Doctor,
  Events,
  systemClock,
  Worker,
  workerRole,
  type SecretStore,
} from '@carillon/core'

import { createOpenFga } from '../auth/open-fga.ts'
import {
  endPool,
  openPool,
  requireCurrentSchema,
  requireDatabaseUrl,
  withDatabaseErrors,
  type Pool,
} from './database.ts'
import { openSecretsKeys } from './keys.ts'
import { createLogger, logEvents } from './log.ts'
import { createMetrics } from './metrics.ts'
import { loadPlanned, openModuleDb, planModules, workerNeeds } from './modules.ts'
import { OperatorError } from './operator-error.ts'
import { Readiness } from './readiness.ts'
import { startUp, type RunningCarillon, type StartOptions, type StartUp } from './service.ts'
import type { Settings } from './settings.ts'
import { serveWorkerProbes } from './worker-probes.ts'

export interface StartWorkerOptions extends StartOptions {
  /** The worker claims runs of these kinds only. */
  readonly targetKinds: readonly string[]
  /** The most runs that the worker holds at a time. @default what `WorkerOptions.concurrency` of core says */
  readonly concurrency?: number
  /** Shown by `carillon doctor` and in pg_stat_activity, and nowhere else. @default the host name */
  readonly name?: string
  /** The port of its probes and metrics, on the host of the settings. Null: the worker does not listen. @default `SERVICE_DEFAULTS.metricsPort` */
  readonly metricsPort?: number | null
}

interface WorkerSecretsParts {
  readonly url: string
  readonly schema: string
  /** Null: secrets cannot be decrypted. */
  readonly keys: readonly Buffer[] | null
  readonly events: Events
}

/** The largest `concurrency`. Each run in flight is one call of a target, with a connection of its own. */
const CONCURRENCY_MAX = 100_000
/** Connections of the pool that answers readiness probes, which are rare. The worker opens pools of its own. */
const PROBE_CONNECTIONS = 2
/** Connections of the pool that reads secrets: one short read for each attempt that needs a secret. */
const SECRETS_CONNECTIONS = 2

/** Starts a worker on a shared Postgres. Any number of workers may run; there is no leader. */
export async function startWorker(settings: Settings, options: StartWorkerOptions): Promise<RunningCarillon> {
  const { logger = createLogger(settings), name = hostname(), metricsPort = SERVICE_DEFAULTS.metricsPort } = options
  requireWholeNumber('--concurrency', options.concurrency ?? 1, 1, CONCURRENCY_MAX)
  requireWholeNumber('--metrics-port', metricsPort ?? 0, 0, 65_535)
  const databaseUrl = requireDatabaseUrl(settings)
  const plan = await planModules(settings, workerNeeds(options.targetKinds))
  const keys = openSecretsKeys(settings)
  const metrics = createMetrics()
  return startUp({ name: 'worker', logger, metrics, options }, async (start) => {
    const events = new Events()
    logEvents(events, logger)
    const { schema } = settings
    const pool = await openPool({
      url: databaseUrl,
      schema,
      applicationName: `carillon ${name} probe`,
      maxConnections: PROBE_CONNECTIONS,
      onIdleError: (error) => events.emit('service.failed', { service: 'pool', error }),
    })
    start.defer(() => endPool(pool, systemClock))
    await requireCurrentSchema(pool, databaseUrl, { role: workerRole(schema), manifests: plan.manifests })
    const secrets = await openWorkerSecrets(start, { url: databaseUrl, schema, keys, events })
    const dbs = { worker: await openModuleDb(start, { url: databaseUrl, schema, events }) }
    start.checkpoint()
    const { modules } = await loadPlanned(start, { settings, plan, dbs, secrets, events, meter: metrics.meter })
    start.checkpoint()
    const { concurrency } = options
    const worker = new Worker({
      databaseUrl,
      schema,
      retentionDays: settings.retentionDays,
      transcriptBytes: settings.transcriptBytes,
      modules,
      publicUrl: settings.publicUrl ?? `http://${settings.host}:${settings.port}`,
      name,
      events,
      meter: metrics.meter,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(settings.openFga === null ? {} : { authorization: createOpenFga(settings.openFga) }),
    })
    start.defer(() => worker.stop())
    const readiness = new Readiness({ pool, clock: systemClock, logger })
    const address = { host: settings.host, port: metricsPort ?? 0, remedy: 'choose another with --metrics-port' }
    const url = metricsPort === null ? '' : await serveWorkerProbes(start, address, { metrics, readiness, events })
    start.checkpoint()
    await withDatabaseErrors(databaseUrl, () => worker.start())
    readiness.started()
    return { url, signInUrl: null, dataDir: null, postgresPort: null, copiedProgram: null, isFirstStart: false }
  })
}

/** Opens the secret store that targets read from. Its connections assume the Postgres role of workers and no other (I9). */
export async function openWorkerSecrets(
  start: StartUp,
  { url, schema, keys, events }: WorkerSecretsParts,
): Promise<SecretStore> {
  const pool = await openPool({
    url,
    schema,
    applicationName: 'carillon secrets',
    role: workerRole(schema),
    maxConnections: SECRETS_CONNECTIONS,
    onIdleError: (error) => events.emit('service.failed', { service: 'pool', error }),
  })
  start.defer(() => endPool(pool, systemClock))
  await reportUnreadableSecrets(pool, { keys, events })
  return new BuiltInSecretStore({ db: createDb(pool), keys })
}

/**
 * Reports secrets that none of the keys decrypts. Otherwise a lost key would show only in runs that need such a secret.
 * The worker does this because the API role sees one project at a time and cannot count the secrets of all.
 */
async function reportUnreadableSecrets(
  pool: Pool,
  { keys, events }: Pick<WorkerSecretsParts, 'keys' | 'events'>,
): Promise<void> {
  const { status, message } = await new Doctor({ pool, keys }).examineSecrets()
  if (status === 'ok') return
  events.emit('service.failed', { service: 'secrets', error: new CarillonError('secrets_unavailable', message) })
}

function requireWholeNumber(flag: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw new OperatorError('settings_invalid', `${flag}: expected a whole number from ${min} to ${max}, got ${value}`)
}
