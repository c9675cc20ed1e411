import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

import type { AppDeps } from './app-deps.ts'
import { toldError } from './told-error.ts'

/**
 * Writes one line per request, when its answer is out or its connection gone. It holds no query string, body, header or
 * path: any of them may hold what nobody should read twice.
 */
export function logRequests(app: FastifyInstance, { logger, clock }: Pick<AppDeps, 'logger' | 'clock'>): void {
  app.addHook('onRequest', async (request, reply) => {
    request.startedMs = clock.monotonicMs()
    reply.header('x-request-id', request.id)
    reply.raw.once('close', () => {
      logRequest(logger, request, reply.raw.statusCode, clock.monotonicMs() - request.startedMs)
    })
  })
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
  else logger.error({ ...line, error: toldError(problem?.cause) }, 'request')
}

/** The pattern, such as `/api/v1/schedules/:id`; null if there is none for the path. */
export function routeOf({ routeOptions }: FastifyRequest): string | null {
  return routeOptions.url ?? null
}

function callerFields({ keyId, caller }: NonNullable<FastifyRequest['identity']>) {
  return { keyId, tenant: caller.tenantId, project: caller.projectId }
}

/** For a request that Fastify refuses before any hook has run. */
export function logRefused(logger: Logger, request: FastifyRequest, reply: FastifyReply): void {
  reply.raw.once('close', () => logRequest(logger, request, reply.raw.statusCode, 0))
}
