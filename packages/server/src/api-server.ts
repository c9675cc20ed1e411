import { createDb, Feed, Grants, Keys, Scheduler, systemClock, VERSION, type Events, type Target } from '@carillon/core'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

import { createApp } from './app.ts'
import type { Pool } from './database.ts'
import { registerHomePage } from './home-page.ts'
import { asServiceError, urlOf, type Address } from './listening.ts'
import { gaugePool, type Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'
import type { Settings } from './settings.ts'
import { registerSignIn } from './sign-in-routes.ts'
import { SignIn } from './sign-in.ts'
import type { StartUp } from './start-up.ts'

/** How long answers under way may take once a stop was asked for. A live event stream would never end by itself. */
const CLOSE_LIMIT_MS = 4000

interface ApiServerParts {
  readonly settings: Settings
  readonly adminKey: string
  readonly pool: Pool
  readonly targets: readonly Target[]
  readonly events: Events
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly logger: Logger
}

/** Serves the API and what belongs to it, until the service ends. */
export async function serveApi(
  start: StartUp,
  parts: ApiServerParts,
): Promise<{ readonly url: string; readonly signInUrl: string }> {
  const { settings, adminKey, pool, targets, events, metrics, readiness, logger } = parts
  const clock = systemClock
  const db = createDb(pool)
  const signIn = new SignIn({ adminKey })
  const scheduler = new Scheduler({
    db,
    clock,
    events,
    targets: new Map(targets.map((target) => [target.kind, target])),
  })
  gaugePool(metrics.meter, pool)
  const app = await createApp({
    scheduler,
    keys: new Keys({ db, clock }),
    grants: new Grants({ db, clock }),
    feed: new Feed({ db }),
    clock,
    adminKey,
    version: VERSION,
    logger,
    meter: metrics.meter,
    renderMetrics: () => metrics.renderMetrics(),
    readiness: () => readiness.problems(),
    signIn,
    ...(settings.requestsPerMinute === null ? {} : { limits: { requestsPerMinute: settings.requestsPerMinute } }),
  })
  await registerSignIn(app, signIn)
  registerHomePage(app, { scheduler, signIn, host: settings.host })
  start.defer(() => close(app))
  start.defer(() => readiness.stopping())
  const url = await listen(app, addressOf(settings))
  return { url, signInUrl: `${url}/sign-in?token=${signIn.issueToken()}` }
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
  await app.close()
  cancel()
}
