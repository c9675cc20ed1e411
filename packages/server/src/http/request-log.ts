import type { Clock } from '@carillon/core'
import { metrics, type Meter } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

import type { Identity } from '../auth/identity.ts'
import { loggableError } from './database-errors.ts'
import type { ProblemError } from './problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated caller; undefined before authentication and without valid credentials. */
    identity: Identity | undefined
    /** The problem that the request was answered with. */
    problem: ProblemError | undefined
    /** When the request began, by the monotonic clock. */
    startedMs: number
  }
}

interface RequestLogDeps {
  readonly logger: Logger
  readonly clock: Clock
  /** @default the meter `carillon` of the process */
  readonly meter?: Meter | undefined
}

const BOUNDARIES_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Logs and measures every request when its answer is sent or its connection is gone. The log line holds no query string, body,
 * header or path, because each of them may hold a secret.
 */
export function recordRequests(app: FastifyInstance, { logger, clock, meter }: RequestLogDeps): void {
  const duration = createDurationMetric(meter ?? metrics.getMeter('carillon'))
  app.decorateRequest('identity', undefined)
  app.decorateRequest('problem', undefined)
  app.decorateRequest('startedMs', 0)
  app.addHook('onRequest', async (request, reply) => {
    request.startedMs = clock.monotonicMs()
    reply.header('x-request-id', request.id)
    reply.raw.once('close', () => {
      const durationMs = clock.monotonicMs() - request.startedMs
      logRequest(logger, request, reply.raw.statusCode, durationMs)
      // The duration of an event stream is not a response time.
      if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return
      const route = routeOf(request) ?? 'none'
      duration.record(durationMs / 1000, { method: request.method, route, status: reply.raw.statusCode })
    })
  })
}

/** The labels are the method, the route and the status, never a caller or a schedule: those have too many values. */
function createDurationMetric(meter: Meter) {
  return meter.createHistogram('http.server.request.duration_seconds', {
    unit: 's',
    description: 'from the request to the end of its answer',
    advice: { explicitBucketBoundaries: BOUNDARIES_SECONDS },
  })
}

/** Logs a request that Fastify refuses before any hook runs. Its duration is not known and logged as 0. */
export function logRefused(logger: Logger, request: FastifyRequest, reply: FastifyReply): void {
  reply.raw.once('close', () => logRequest(logger, request, reply.raw.statusCode, 0))
}

function logRequest(logger: Logger, request: FastifyRequest, status: number, durationMs: number): void {
  const { identity, problem } = request
  const line = {
    requestId: request.id,
    method: request.method,
    route: routeOf(request),
    status,
    durationMs: Math.round(durationMs * 1000) / 1000,
    ...(identity === undefined ? {} : callerFields(identity)),
    ...(problem === undefined ? {} : { problem: problem.code }),
  }
  if (status < 500) logger.info(line, 'request')
  else logger.error({ ...line, error: loggableError(problem?.cause) }, 'request')
}

function callerFields({ keyId, caller }: Identity) {
  return { keyId, tenant: caller.tenantId, project: caller.projectId }
}

/** The pattern of the route, such as `/api/v1/schedules/:id`; null if no route matches. */
function routeOf({ routeOptions }: FastifyRequest): string | null {
  return routeOptions.url ?? null
}
