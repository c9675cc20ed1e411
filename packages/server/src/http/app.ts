import { operations, TENANT_REQUESTS_PER_MINUTE, type OperationId } from '@carillon/api'
import type { AuthorizationPort, EventLog, FailureRecord } from '@carillon/core'
import cookie from '@fastify/cookie'
import type { Meter } from '@opentelemetry/api'
import fastify, { type FastifyInstance } from 'fastify'

import { createAuthenticate } from '../auth/authenticate.ts'
import type { JwtVerifier } from '../auth/jwt.ts'
import { EventHub } from '../events/hub.ts'
import { TranscriptHub } from '../events/transcript-hub.ts'
import { createTranscriptReader } from '../events/transcript-messages.ts'
import { guardConnections, serverOptions } from './connections.ts'
import { setSecurityHeaders } from './headers.ts'
import { readJsonBodies } from './input.ts'
import { KeyConcurrency, limitRates, TenantRates } from './limits.ts'
import type { AnyHandler, HandlersOf, Service } from './operation-handlers.ts'
import { registerOperations } from './operations.ts'
import { serveProbes, serveReference, type ProbeDeps } from './pages.ts'
import { ProblemError, sendProblem } from './problems.ts'
import { serveRawRoutes } from './raw-routes.ts'
import { recordRequests } from './request-log.ts'
import { accessHandlers } from './routes/access.ts'
import { callbackHandlers } from './routes/callbacks.ts'
import { runHandlers } from './routes/runs.ts'
import { scheduleHandlers } from './routes/schedules.ts'
import { systemHandlers } from './routes/system.ts'
import { tenantHandlers } from './routes/tenants.ts'
import { serveTogether, type ServedModule } from './served-operations.ts'
import type { SignIn } from './sign-in.ts'
import { toEvent, toTranscriptLine } from './wire.ts'

export interface AppDeps extends Omit<Service, 'eventHub' | 'transcriptHub' | 'calendarLimit'>, ProbeDeps {
  readonly eventLog: EventLog
  /** Checks the permission of every request, except those of the installation. */
  readonly authorization: AuthorizationPort
  /** Records whether polls of the event log succeed, for clients that follow events. @default it is not recorded */
  readonly eventLogFailures?: Pick<FailureRecord, 'failed' | 'succeeded'>
  /** Its holder is admin of the installation's own project and administers every tenant. */
  readonly adminKey: string
  readonly version: string
  /** The modules whose operations and raw routes are served. @default none */
  readonly modules?: readonly ServedModule[]
  /** Receives the durations of requests. @default the meter `carillon` of the process */
  readonly meter?: Meter
  /** Lets a signed-in browser act as the installation. @default browsers cannot sign in */
  readonly signIn?: Pick<SignIn, 'accepts'>
  /** @default tokens are not accepted */
  readonly jwt?: JwtVerifier
  /**
   * The rate limit of one key in this process, unless the key's tenant has a limit of its own.
   * @default `TENANT_REQUESTS_PER_MINUTE.default`
   */
  readonly requestsPerMinute?: number
}

/** How many clients may follow events or transcripts with one key in this process. */
const STREAMS_PER_KEY = 50
/**
 * How many calendars a key may request at a time; a further request is refused with 429. Calendar programs poll every few
 * minutes. A program that polls faster than it is answered must not slow down other clients.
 */
const CALENDARS_PER_KEY = 2

/** The handler of each operation of Carillon. An operation without one does not compile. */
const handlers: HandlersOf<OperationId> = {
  ...scheduleHandlers,
  ...runHandlers,
  ...accessHandlers,
  ...tenantHandlers,
  ...systemHandlers,
  ...callbackHandlers,
}

/**
 * Builds the HTTP server, ready to listen. Routes that are added before it listens get the same headers, limits, log lines and
 * problems.
 * @throws CarillonError `module_refused` if two operations collide, or one has no handler; the message names them
 */
export async function createApp(deps: AppDeps): Promise<FastifyInstance> {
  const { requestsPerMinute = TENANT_REQUESTS_PER_MINUTE.default, modules = [] } = deps
  const { scheduler, callbacks, keys, grants, members, secrets, tenants, projects, clock, logger, authorization } = deps
  // TypeScript cannot relate an id to its entry in the table: each handler gets the call that `HandlersOf` describes.
  const own = { operations, handlers: handlers as unknown as Readonly<Record<string, AnyHandler>> }
  const served = serveTogether(own, modules)
  const app: FastifyInstance = fastify(serverOptions(logger))
  const streamLimit = new KeyConcurrency({ max: STREAMS_PER_KEY, noun: 'streams', retryAfterSeconds: 10 })
  const eventHub = new EventHub({
    eventLog: deps.eventLog,
    clock,
    toEvent: (entry, now) => toEvent(entry, now, deps.reasons),
    streamLimit,
    logger,
    ...(deps.eventLogFailures && { failures: deps.eventLogFailures }),
  })
  const readTranscript = createTranscriptReader(scheduler, toTranscriptLine)
  const transcriptHub = new TranscriptHub({ read: readTranscript, clock, streamLimit, logger })

  // Hooks run in this order: first those that record every request, then those that may refuse it.
  recordRequests(app, deps)
  await setSecurityHeaders(app)
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
  guardConnections(app, { clock })
  app.addHook('preClose', async () => {
    eventHub.close()
    transcriptHub.close()
  })
  await app.register(cookie)
  await limitRates(app, { requestsPerMinute, tenantRates: new TenantRates({ tenants, clock }) })
  refuseUnknownRoutes(app)
  readJsonBodies(app)

  serveProbes(app, deps)
  await serveReference(app, {
    version: deps.version,
    others: Object.fromEntries(modules.flatMap((each) => Object.entries(each.operations))),
  })
  const calendarLimit = new KeyConcurrency({ max: CALENDARS_PER_KEY, noun: 'calendars', retryAfterSeconds: 2 })
  const facades = { scheduler, callbacks, keys, grants, members, secrets, tenants, projects }
  const { reasons = {} } = deps
  const service = { ...facades, reasons, clock, logger, eventHub, transcriptHub, calendarLimit }
  await registerOperations(app, { service, authenticate: createAuthenticate(deps), authorization, served })
  await serveRawRoutes(app, modules)
  return app
}

interface KnownRoute {
  readonly method: string
  readonly segments: readonly string[]
}

/** Answers requests that match no route: 405 if the path exists with other methods, otherwise 404. */
function refuseUnknownRoutes(app: FastifyInstance): void {
  const routes: KnownRoute[] = []
  // Fastify calls this hook for routes that are added after `createApp`, too.
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, segments: url.split('/') })
  })
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (request) => {
    const segments = (request.url.split('?')[0] ?? '').split('/')
    const allowed = routes.filter((route) => isMatch(route.segments, segments)).map(({ method }) => method)
    const methods = [...new Set(allowed)].toSorted()
    if (methods.length === 0 || methods.includes(request.method)) {
      throw new ProblemError(
        'route_not_found',
        'expected a path of this server, got another: see /docs for all of them',
      )
    }
    const allow = methods.join(', ')
    throw new ProblemError('method_not_allowed', `expected one of ${allow}, got ${request.method}`, {
      headers: { allow },
    })
  })
}

function isMatch(pattern: readonly string[], path: readonly string[]): boolean {
  if (pattern.at(-1) === '*') return pattern.slice(0, -1).every((part, index) => part === path[index])
  return pattern.length === path.length && pattern.every((part, index) => part.startsWith(':') || part === path[index])
}
