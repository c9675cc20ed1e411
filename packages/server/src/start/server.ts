import type { ModuleReasons } from '@carillon/api'
import {
  apiRole,
  Callbacks,
  createDb,
  Events,
  FailureRecord,
  EventLog,
  FORGET_AFTER_MS,
  Grants,
  Keys,
  MembershipAuthorization,
  Members,
  Projects,
  Scheduler,
  Secrets,
  systemClock,
  Tenants,
  VERSION,
  type AuthorizationPort,
  type Db,
  type LoadedModule,
  type Target,
} from '@carillon/core'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

import { createJwtVerifier } from '../auth/jwt.ts'
import { createOpenFga } from '../auth/open-fga.ts'
import { createApp } from '../http/app.ts'
import { serveHomePage } from '../http/home-page.ts'
import type { ServedModule } from '../http/served-operations.ts'
import { serveSignIn, SignIn } from '../http/sign-in.ts'
import { endPool, openPool, requireApiRole, requireCurrentSchema, requireDatabaseUrl, type Pool } from './database.ts'
import { openAdminKey, openSecretsKeys } from './keys.ts'
import { asListenError, requireFreePort, urlOf, type Address } from './listening.ts'
import { createLogger, logEvents } from './log.ts'
import { createMetrics, gaugeFailing, gaugePool, type Metrics } from './metrics.ts'
import { asOperator, loadPlanned, NO_SECRETS, planModules, SERVER_NEEDS } from './modules.ts'
import { hostProblems } from './outbound.ts'
import { Readiness } from './readiness.ts'
import { startUp, type RunningCarillon, type StartOptions, type StartUp } from './service.ts'
import type { Settings } from './settings.ts'

/** How long the app may take to close once a stop was requested. Then all connections are cut. */
const CLOSE_LIMIT_MS = 4000

/** Records the failures of background work in the API process, which no caller of the API sees. */
export interface ServerParts {
  readonly pool: FailureRecord
  /** Failed polls of the event log, on behalf of clients that follow events. */
  readonly eventLog: FailureRecord
}

interface ApiDeps {
  readonly settings: Settings
  readonly adminKey: string
  /** Null: secrets cannot be stored. */
  readonly secretsKeys: readonly Buffer[] | null
  readonly pool: Pool
  readonly targets: readonly Target[]
  /** Their operations and raw routes are served. */
  readonly modules: readonly LoadedModule[]
  /** The reasons of modules, each with its sentence. */
  readonly reasons: ModuleReasons
  readonly events: Events
  readonly serverParts: ServerParts
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly logger: Logger
}

/** Starts the API on a shared Postgres, without a worker. Any number of servers may run on one database. */
export async function startServer(settings: Settings, options: StartOptions = {}): Promise<RunningCarillon> {
  const { logger = createLogger(settings) } = options
  const url = requireDatabaseUrl(settings)
  const plan = await planModules(settings, SERVER_NEEDS)
  const metrics = createMetrics()
  return startUp({ name: 'server', logger, metrics, options }, async (start) => {
    await requireFreePort(addressOf(settings))
    const { adminKey, dataDir } = openAdminKey(settings)
    const secretsKeys = openSecretsKeys(settings)
    const events = new Events()
    logEvents(events, logger)
    const serverParts = createServerParts(events)
    const pool = await openApiPool(start, { url, schema: settings.schema }, serverParts)
    await requireCurrentSchema(pool, url, { role: apiRole(settings.schema), manifests: plan.manifests })
    await requireApiRole(pool, url)
    start.checkpoint()
    const readiness = new Readiness({ pool, clock: systemClock, logger })
    const parts = { settings, plan, dbs: { api: createDb(pool) }, secrets: NO_SECRETS, events, meter: metrics.meter }
    const { modules, targets } = await loadPlanned(start, parts)
    start.checkpoint()
    const { reasons } = plan
    const opened = { settings, adminKey, secretsKeys, pool, targets, modules, reasons }
    const deps = { ...opened, events, serverParts, metrics, readiness, logger }
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

export async function openApiPool(
  start: StartUp,
  database: { readonly url: string; readonly schema: string },
  serverParts: ServerParts,
): Promise<Pool> {
  const pool = await openPool({
    ...database,
    applicationName: 'carillon server',
    onIdleError: (error) => void serverParts.pool.failed(error),
  })
  start.defer(() => endPool(pool, systemClock))
  return pool
}

/** Serves the API, the home page and sign-in, until `start` stops its parts. Returns once the server listens. */
export async function serveApi(
  start: StartUp,
  deps: ApiDeps,
): Promise<{ readonly url: string; readonly signInUrl: string }> {
  const { settings, adminKey, pool, modules, reasons, events, serverParts, metrics, readiness, logger } = deps
  const db = createDb(pool)
  const signIn = new SignIn({ adminKey })
  const facades = createFacades(db, deps)
  gaugePool(metrics.meter, pool)
  gaugeFailing(metrics.meter, Object.values(serverParts))
  const app = await asOperator(() =>
    createApp({
      ...facades,
      modules: modules.map(servedPart),
      reasons,
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
      ...(settings.requestsPerMinute === null ? {} : { requestsPerMinute: settings.requestsPerMinute }),
    }),
  )
  await serveSignIn(app, signIn)
  serveHomePage(app, { scheduler: facades.scheduler, signIn, reasons, url: () => urlOf(app.server, settings.host) })
  start.defer(() => close(app))
  start.defer(() => readiness.stopping())
  const url = await listenOn(app, addressOf(settings))
  // Node emits this if it cannot accept a connection, as without free file descriptors. Without a listener it would end the process.
  app.server.on('error', (error) => events.emit('service.failed', { service: 'api', error }))
  return { url, signInUrl: `${url}/sign-in?token=${signIn.issueToken()}` }
}

function servedPart({
  manifest: { name, operations = {} },
  parts: { handlers = {}, rawRoutes = [] },
}: LoadedModule): ServedModule {
  return { name, operations, handlers, rawRoutes }
}

function createFacades(db: Db, { settings, secretsKeys, targets, events }: ApiDeps) {
  const deps = { db, clock: systemClock }
  const { maxSchedulesPerProject, maxSchedulesPerUser, minimumSeconds, retentionDays } = settings
  const targetsByKind = new Map(targets.map((target) => [target.kind, target]))
  return {
    callbacks: new Callbacks({ ...deps, targets: targetsByKind }),
    scheduler: new Scheduler(
      { ...deps, events, targets: targetsByKind },
      { maxSchedulesPerProject, maxSchedulesPerUser, minimumSeconds, retentionDays },
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

/** The members and OpenFGA must both allow a request, as in a worker: a removed member stays out, whatever OpenFGA says. */
function createAuthorization({ openFga }: Settings, db: Db): AuthorizationPort {
  const members = new MembershipAuthorization({ db, clock: systemClock })
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
