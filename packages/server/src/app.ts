import cookie from '@fastify/cookie'
import fastify, { type FastifyInstance } from 'fastify'

import { resolveLimits, type AppDeps } from './http/app-deps.ts'
import { createAuthenticate } from './http/authentication.ts'
import { closeGracefully } from './http/closing.ts'
import { FeedHub } from './http/events/feed-hub.ts'
import { handlers } from './http/handlers.ts'
import { readJsonBodies } from './http/json-body.ts'
import { KeyPlaces } from './http/key-places.ts'
import { refuseInsteadOfNode } from './http/node-refusals.ts'
import { registerOperations } from './http/operation-routes.ts'
import { serveHealth } from './http/pages/health.ts'
import { serveReference } from './http/pages/reference.ts'
import { replyWithProblems } from './http/problems/problem-replies.ts'
import { limitRates } from './http/rate-limits.ts'
import { logRequests } from './http/request-log.ts'
import { measureRequests } from './http/request-metrics.ts'
import { decorateRequests } from './http/request-state.ts'
import { setSecurityHeaders } from './http/security-headers.ts'
import { CONNECTIONS_MAX, serverOptions } from './http/server-options.ts'
import { TenantRates } from './http/tenant-rates.ts'
import { refuseUnknownRoutes } from './http/unknown-routes.ts'

/** Programs ask for a calendar every few minutes; one that asks faster than it is answered must not slow down others. */
const CALENDARS_PER_KEY = 2

export type { AppDeps } from './http/app-deps.ts'

/**
 * The service over HTTP, ready to listen. Other routes may be added before it does; they get the same headers, limits, log
 * lines and problems.
 */
export async function createApp(deps: AppDeps): Promise<FastifyInstance> {
  const { requestsPerMinute, bodyBytes, streamsPerKey } = resolveLimits(deps.limits)
  const { scheduler, keys, grants, members, secrets, tenants, projects, feed, authorization, clock, logger, version } =
    deps
  const app: FastifyInstance = fastify(serverOptions(logger, bodyBytes))
  app.server.maxConnections = CONNECTIONS_MAX
  const feedHub = new FeedHub({
    feed,
    clock,
    streamsPerKey,
    logger,
    ...(deps.feedFailures && { failures: deps.feedFailures }),
  })

  // The order of hooks: what is always told about a request, then what may end it.
  decorateRequests(app)
  logRequests(app, deps)
  measureRequests(app, deps)
  await setSecurityHeaders(app)
  replyWithProblems(app)
  closeGracefully(app, deps)
  refuseInsteadOfNode(app)
  app.addHook('preClose', async () => feedHub.close())
  await app.register(cookie)
  await limitRates(app, { requestsPerMinute, tenantRates: new TenantRates({ tenants, clock }) })
  refuseUnknownRoutes(app)
  readJsonBodies(app)

  serveHealth(app, deps)
  await serveReference(app, version)
  const calendarPlaces = new KeyPlaces({ max: CALENDARS_PER_KEY, noun: 'calendars', retryAfterSeconds: 2 })
  const service = {
    scheduler,
    keys,
    grants,
    members,
    secrets,
    tenants,
    projects,
    clock,
    logger,
    feedHub,
    calendarPlaces,
  }
  await registerOperations(app, { service, authenticate: createAuthenticate(deps), authorization, handlers })
  return app
}
