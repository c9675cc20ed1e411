import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'

import type { FastifyHttpOptions } from 'fastify'
import type { Logger } from 'pino'

import { createClientErrorHandler } from './client-errors.ts'
import { LENIENT } from './node-refusals.ts'
import { sendProblem } from './problems/problem-replies.ts'
import { logRefused } from './request-log.ts'

const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 15_000
/** Beyond it, whoever comes is turned away, so that those who are there can be served. */
export const CONNECTIONS_MAX = 10_000
/** How often Node looks for requests that take too long to arrive. */
const CHECK_EVERY_MS = 5000
/** As long as a URL can get: what is no id is for the core to say. */
const PARAM_MAX_LENGTH = 16_384

export function serverOptions(logger: Logger, bodyBytes: number): FastifyHttpOptions<Server> {
  return {
    // Fastify's own lines hold URLs; ours do not.
    logger: false,
    // An id that came with the request would let anybody write into the log.
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    trustProxy: false,
    bodyLimit: bodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: { ...LENIENT, headersTimeout: HEADERS_TIMEOUT_MS, connectionsCheckingInterval: CHECK_EVERY_MS },
    routerOptions: { maxParamLength: PARAM_MAX_LENGTH },
    // Refused by ourselves, as a problem.
    return503OnClosing: false,
    clientErrorHandler: createClientErrorHandler(logger),
    frameworkErrors: (error, request, reply) => {
      logRefused(logger, request, reply)
      reply.header('x-request-id', request.id)
      sendProblem(error, request, reply)
    },
  }
}
