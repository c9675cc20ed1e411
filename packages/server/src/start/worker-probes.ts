import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

import { systemClock, type Events } from '@carillon/core'

import { listen, urlOf, type Address } from './listening.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'
import type { StartUp } from './service.ts'

interface WorkerProbeParts {
  readonly metrics: Metrics
  readonly readiness: Readiness
  readonly events: Events
}

interface Answer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

const CLOSE_LIMIT_MS = 1000

/** Serves /healthz, /readyz and /metrics of a worker. */
export async function serveWorkerProbes(start: StartUp, address: Address, parts: WorkerProbeParts): Promise<string> {
  const server = createServer((request, response) => void respond(request, response, parts))
  start.defer(async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const cancel = systemClock.after(CLOSE_LIMIT_MS, () => server.closeAllConnections())
    server.close(() => resolve())
    server.closeIdleConnections()
    await closed
    cancel()
  })
  start.defer(() => parts.readiness.stopping())
  await listen(server, address)
  // Node emits this if it cannot accept a connection, as without free file descriptors. Without a listener it would end the process.
  server.on('error', (error) => parts.events.emit('service.failed', { service: 'health', error }))
  return urlOf(server, address.host)
}

/** Never rejects, because it is not awaited. */
async function respond(request: IncomingMessage, response: ServerResponse, parts: WorkerProbeParts): Promise<void> {
  try {
    const { status, contentType, body } = await answerOrFail(request, parts)
    response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
    response.end(request.method === 'HEAD' ? undefined : body)
  } catch (error) {
    parts.events.emit('service.failed', { service: 'health', error })
    response.destroy()
  }
}

async function answerOrFail(request: IncomingMessage, parts: WorkerProbeParts): Promise<Answer> {
  try {
    return await answer(request, parts)
  } catch (error) {
    parts.events.emit('service.failed', { service: 'health', error })
    return json(500, { status: 'failed' })
  }
}

async function answer({ method, url }: IncomingMessage, { metrics, readiness }: WorkerProbeParts): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return json(405, { status: 'method not allowed' })
  switch (url?.split('?', 1)[0]) {
    case '/healthz':
      return json(200, { status: 'ok' })
    case '/readyz': {
      const problems = await readiness.problems()
      return problems.length === 0 ? json(200, { status: 'ready' }) : json(503, { status: 'not ready', problems })
    }
    case '/metrics':
      return {
        status: 200,
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
        body: await metrics.renderMetrics(),
      }
    default:
      return json(404, { status: 'not found' })
  }
}

function json(status: number, body: object): Answer {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(body)}\n` }
}
