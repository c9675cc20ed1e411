import {
  createDb,
  Events,
  FailureRecord,
  EventLog,
  FORGET_AFTER_MS,
  Grants,
  Keys,
  MemberAuthorization,
  Members,
  Projects,
  Scheduler,
  Secrets,
  systemClock,
  Tenants,
  VERSION,
  type AuthorizationPort,
  type Db,
  type Target,
} from '@carillon/core'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

import { createJwtVerifier } from '../auth/jwt.ts'
import { createOpenFga } from '../auth/open-fga.ts'
import { createApp } from '../http/app.ts'
import { serveHomePage } from '../http/home-page.ts'
import { serveSignIn, SignIn } from '../http/sign-in.ts'
import { endPool, openPool, requireApiRole, requireCurrentSchema, requireDatabaseUrl, type Pool } from './database.ts'
import { openAdminKey, openSecretsKeys } from './keys.ts'
import { asListenError, requireFreePort, urlOf, type Address } from './listening.ts'
import { createLogger, logEvents } from './log.ts'
import { createMetrics, gaugeFailing, gaugePool, type Metrics } from './metrics.ts'
import { Readiness } from './readiness.ts'
import { startUp, type RunningService, type StartOptions, type StartUp } from './service.ts'
import type { Settings } from './settings.ts'
import { createTargets, hostProblems, NO_SECRETS } from './targets.ts'

/** How long open requests may take once a stop was requested. An event stream would never end by itself. */
const CLOSE_LIMIT_MS = 4000

/** The background work of the API process. Its failures reach no caller, so they are recorded here. */
export interface ServerParts {
  readonly pool: FailureRecord
  /** Polls the event log for clients that follow events. */
  readonly eventLog: FailureRecord
}

interface ApiDeps {
  readonly settings: Settings
  readonly adminKey: string
  /** Null: secrets cannot be stored. */
  readonly secretsKeys: readonly Buffer[] | null
  readonly pool: Pool
  readonly targets: readonly Target[]
  readonly events: Events
  readonly serverParts: ServerParts
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly logger: Logger
}

/** Starts the API on a shared Postgres, without a worker. Any number of servers may run. */
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
    const pool = await openApiPool(start, url, serverParts)
    await requireCurrentSchema(pool, url, 'carillon_api')
    await requireApiRole(pool, url)
    start.checkpoint()
    const readiness = new Readiness({ pool, clock: systemClock, logger })
    const targets = createTargets(settings, NO_SECRETS)
    const deps = { settings, adminKey, secretsKeys, pool, targets, events, serverParts, metrics, readiness, logger }
    const served = await serveApi(start, deps)
    readiness.started()
    return { ...served, dataDir, postgresPort: null, copiedProgram: null, isFirstStart: false }
  })
}

export function createServerParts(events: Events): ServerParts {
  const deps = { clock: systemClock, events }
  return {
    pool: new FailureRecord(deps, { name: 'api pool' }, FORGET_AFTER_MS),
    eventLog: new FailureRecord(deps, { name: 'event log' }, FORGET_AFTER_MS),
  }
}

export async function openApiPool(start: StartUp, url: string, serverParts: ServerParts): Promise<Pool> {
  const pool = await openPool({
    url,
    applicationName: 'carillon server',
    onIdleError: (error) => void serverParts.pool.failed(error),
  })
  start.defer(() => endPool(pool, systemClock))
  return pool
}

/** Serves the API, the home page and sign-in until the service stops. */
export async function serveApi(
  start: StartUp,
  deps: ApiDeps,
): Promise<{ readonly url: string; readonly signInUrl: string }> {
  const { settings, adminKey, pool, events, serverParts, metrics, readiness, logger } = deps
  const db = createDb(pool)
  const signIn = new SignIn({ adminKey })
  const facades = createFacades(db, deps)
  gaugePool(metrics.meter, pool)
  gaugeFailing(metrics.meter, Object.values(serverParts))
  const app = await createApp({
    ...facades,
    clock: systemClock,
    eventLogFailures: serverParts.eventLog,
    authorization: createAuthorization(settings, db),
    adminKey,
    version: VERSION,
    logger,
    meter: metrics.meter,
    renderMetrics: () => metrics.renderMetrics(),
    readiness: () => readiness.problems(),
    notices: () => readiness.notices,
    signIn,
    ...(settings.jwt === null ? {} : { jwt: createJwtVerifier({ ...settings.jwt, logger }) }),
    ...(settings.requestsPerMinute === null ? {} : { limits: { requestsPerMinute: settings.requestsPerMinute } }),
  })
  await serveSignIn(app, signIn)
  serveHomePage(app, { scheduler: facades.scheduler, signIn, url: () => urlOf(app.server, settings.host) })
  start.defer(() => close(app))
  start.defer(() => readiness.stopping())
  const url = await listenOn(app, addressOf(settings))
  // Emitted if a connection cannot be accepted, for instance without free file descriptors. Unhandled, it ends the process.
  app.server.on('error', (error) => events.emit('service.failed', { service: 'api', error }))
  return { url, signInUrl: `${url}/sign-in?token=${signIn.issueToken()}` }
}

function createFacades(db: Db, { settings, secretsKeys, targets, events }: ApiDeps) {
  const deps = { db, clock: systemClock }
  const { maxSchedulesPerProject, maxSchedulesPerUser, minimumSeconds } = settings
  return {
    scheduler: new Scheduler(
      { ...deps, events, targets: new Map(targets.map((target) => [target.kind, target])) },
      { maxSchedulesPerProject, maxSchedulesPerUser, minimumSeconds },
    ),
    keys: new Keys(deps),
    grants: new Grants(deps),
    members: new Members(deps),
    secrets: new Secrets({ ...deps, keys: secretsKeys }),
    tenants: new Tenants({ ...deps, checkHosts: hostProblems }),
    projects: new Projects(deps),
    eventLog: new EventLog(deps),
  }
}

/** Both must allow a request, here as in a worker: a member removed from a project stays out, whatever OpenFGA says. */
function createAuthorization({ openFga }: Settings, db: Db): AuthorizationPort {
  const members = new MemberAuthorization({ db, clock: systemClock })
  if (openFga === null) return members
  const external = createOpenFga(openFga)
  return {
    isAllowed: async (request) => (await members.isAllowed(request)) && (await external.isAllowed(request)),
  }
}

export function addressOf({ host, port }: Settings): Address {
  return { host, port, remedy: 'set CARILLON_PORT' }
}

async function listenOn(app: FastifyInstance, address: Address): Promise<string> {
  try {
    await app.listen({ host: address.host, port: address.port })
    return urlOf(app.server, address.host)
  } catch (error) {
    throw asListenError(error, address)
  }
}

async function close(app: FastifyInstance): Promise<void> {
  const cancel = systemClock.after(CLOSE_LIMIT_MS, () => app.server.closeAllConnections())
  try {
    await app.close()
  } finally {
    cancel()
  }
}
