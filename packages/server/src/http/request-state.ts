import type { FastifyInstance } from 'fastify'

import type { Identity } from './identity.ts'
import type { ProblemError } from './problems/problem-error.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks; undefined until that is known, and if it is nobody. */
    identity: Identity | undefined
    /** What it was refused with. */
    problem: ProblemError | undefined
    /** By the monotonic clock. */
    startedMs: number
  }
}

/** What is learned about a request on its way. */
export function decorateRequests(app: FastifyInstance): void {
  app.decorateRequest('identity', undefined)
  app.decorateRequest('problem', undefined)
  app.decorateRequest('startedMs', 0)
}
