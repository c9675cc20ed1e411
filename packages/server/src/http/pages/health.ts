import type { FastifyInstance } from 'fastify'

import type { AppDeps } from '../app-deps.ts'
import { ProblemError } from '../problems/problem-error.ts'
import { UNLIMITED } from '../rate-limits.ts'

const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** For whoever watches the process: without a key, and without a limit. They tell nothing about any tenant. */
export function serveHealth(app: FastifyInstance, { readiness, notices = () => [], renderMetrics }: AppDeps): void {
  app.get('/healthz', UNLIMITED, async () => ({ status: 'ok' }))

  app.get('/readyz', UNLIMITED, async () => {
    const reasons = await readiness()
    if (reasons.length > 0) throw new ProblemError('unavailable', reasons.join('; '))
    const told = notices()
    return { status: 'ready', ...(told.length > 0 && { notices: told }) }
  })

  app.get('/metrics', UNLIMITED, async (_request, reply) => reply.type(PROMETHEUS_TYPE).send(await renderMetrics()))
}
