import { metrics, type Meter } from '@opentelemetry/api'
import type { FastifyInstance } from 'fastify'

import type { AppDeps } from './app-deps.ts'
import { routeOf } from './request-log.ts'

const BOUNDARIES_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Measures how long answers take, by route and status. No label names a caller or a schedule: they are without number. */
export function measureRequests(app: FastifyInstance, { meter, clock }: Pick<AppDeps, 'meter' | 'clock'>): void {
  const duration = createDuration(meter ?? metrics.getMeter('carillon'))
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.once('close', () => {
      // How long somebody follows events is not how long an answer takes.
      if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return
      const seconds = (clock.monotonicMs() - request.startedMs) / 1000
      const route = routeOf(request) ?? 'none'
      duration.record(seconds, { method: request.method, route, status: reply.raw.statusCode })
    })
  })
}

function createDuration(meter: Meter) {
  return meter.createHistogram('http.server.request.duration_seconds', {
    unit: 's',
    description: 'from the request to the end of its answer',
    advice: { explicitBucketBoundaries: BOUNDARIES_SECONDS },
  })
}
