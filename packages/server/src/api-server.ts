import {
  createDb,
  Feed,
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
  type Events,
  type Target,
} from '@carillon/core'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

import { createApp } from './app.ts'
import { createOpenFga } from './authorization/open-fga.ts'
import type { Pool } from './database.ts'
import { registerHomePage } from './home-page.ts'
import { createJwtVerifier } from './jwt/jwt-verifier.ts'
import { asServiceError, urlOf, type Address } from './listening.ts'
import { gaugeFailing, gaugePool, type Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'
import type { ServerParts } from './server-parts.ts'
import type { Settings } from './settings.ts'
import { registerSignIn } from './sign-in-routes.ts'
import { SignIn } from './sign-in.ts'
import type { StartUp } from './start-up.ts'
import { hostProblems } from './tenant-hosts.ts'

/** How long answers under way may take once a stop was asked for. A live event stream would never end by itself. */
const CLOSE_LIMIT_MS = 4000

interface ApiServerParts {
  readonly settings: Settings
  readonly adminKey: string
  /** Null: no secret can be put. */
  readonly secretsKeys: readonly Buffer[] | null
  readonly pool: Pool
  readonly targets: readonly Target[]
  readonly events: Events
  readonly serverParts: ServerParts
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly logger: Logger
}

/** Serves the API and what belongs to it, until the service ends. */
export async function serveApi(
  start: StartUp,
  parts: ApiServerParts,
): Promise<{ readonly url: string; readonly signInUrl: string }> {
  const { settings, adminKey, pool, events, serverParts, metrics, readiness, logger } = parts
  const db = createDb(pool)
  const signIn = new SignIn({ adminKey })
  const facades = createFacades(db, parts)
  gaugePool(metrics.meter, pool)
  gaugeFailing(metrics.meter, Object.values(serverParts))
  const app = await createApp({
    ...facades,
    clock: systemClock,
    feedFailures: serverParts.feed,
    authorization: authorizationOf(settings, db),
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
  await registerSignIn(app, signIn)
  registerHomePage(app, { scheduler: facades.scheduler, signIn, host: settings.host })
  start.defer(() => close(app))
  start.defer(() => readiness.stopping())
  const url = await listen(app, addressOf(settings))
  // A connection that could not be taken, for want of files for instance. Without a listener it would end the process.
  app.server.on('error', (error) => events.emit('service.failed', { service: 'api', error }))
  return { url, signInUrl: `${url}/sign-in?token=${signIn.issueToken()}` }
}

function createFacades(db: Db, { settings, secretsKeys, targets, events }: ApiServerParts) {
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
    feed: new Feed(deps),
  }
}

/** Whoever was removed from a project stays out, whatever OpenFGA says: a worker asks both, too. */
function authorizationOf({ openFga }: Settings, db: Db): AuthorizationPort {
  const members = new MemberAuthorization({ db, clock: systemClock })
  if (openFga === null) return members
  const elsewhere = createOpenFga(openFga)
  return {
    isAllowed: async (request) => (await members.isAllowed(request)) && (await elsewhere.isAllowed(request)),
  }
}

export function addressOf({ host, port }: Settings): Address {
  return { host, port, remedy: 'set CARILLON_PORT' }
}

async function listen(app: FastifyInstance, address: Address): Promise<string> {
  try {
    await app.listen({ host: address.host, port: address.port })
    return urlOf(app.server, address.host)
  } catch (error) {
    throw asServiceError(error, address)
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
