import { createHash } from 'node:crypto'

import { createOpenApi, type OperationTable } from '@carillon/api'
import scalar from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'

import { CONTENT_SECURITY_POLICY } from './headers.ts'
import { WITHOUT_RATE_LIMIT } from './limits.ts'
import { invalidInput, ProblemError } from './problems.ts'

const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g

export interface ProbeDeps {
  /** Renders the metrics in the text format of Prometheus. */
  readonly renderMetrics: () => Promise<string>
  /** The reasons why this server is not ready, one sentence each; empty if it is ready. */
  readonly readiness: () => Promise<readonly string[]>
  /** Recent incidents that are over, one sentence each. @default none */
  readonly notices?: () => readonly string[]
}

/** /healthz, /readyz and /metrics: without a key and without a rate limit. They reveal nothing about a tenant. */
export function serveProbes(app: FastifyInstance, { readiness, notices = () => [], renderMetrics }: ProbeDeps): void {
  app.get('/healthz', WITHOUT_RATE_LIMIT, async () => ({ status: 'ok' }))

  app.get('/readyz', WITHOUT_RATE_LIMIT, async () => {
    const reasons = await readiness()
    if (reasons.length > 0) throw new ProblemError('unavailable', reasons.join('; '))
    const recent = notices()
    return { status: 'ready', ...(recent.length > 0 && { notices: recent }) }
  })

  app.get('/metrics', WITHOUT_RATE_LIMIT, async (_request, reply) =>
    reply.type(PROMETHEUS_TYPE).send(await renderMetrics()),
  )
}

/** The OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`. Nothing is loaded from other hosts. */
export async function serveReference(
  app: FastifyInstance,
  { version, others }: { readonly version: string; readonly others: OperationTable },
): Promise<void> {
  // A relative URL, because the host that a request names cannot be trusted.
  const document = JSON.stringify(createOpenApi({ version, url: '/', others }))
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(document))

  await app.register(async (scope) => {
    scope.addHook('onRequest', async ({ host, url }, reply) => {
      // The page builds a URL from the Host header, and would throw if the header is invalid.
      if (!URL.canParse(`http://${host}`)) {
        throw invalidInput([{ field: 'Host', message: 'expected the name of a host, got something else' }])
      }
      if (url === '/docs') await reply.redirect('/docs/', 301)
    })
    scope.addHook('onSend', async (_request, reply, page) => {
      if (typeof page === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')) {
        reply.header('content-security-policy', policyOf(page))
      }
    })
    await scope.register(scalar, {
      routePrefix: '/docs',
      configuration: {
        url: '/openapi.json',
        pageTitle: 'Carillon API',
        withDefaultFonts: false,
        telemetry: false,
        proxyUrl: '',
        // Each of these would send requests to a third party.
        showDeveloperTools: 'never',
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    })
  })
}

/** The policy of all pages, plus the hashes of the inline scripts of this page. No other inline script may run. */
function policyOf(page: string): string {
  const hashes = [...page.matchAll(INLINE_SCRIPT)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  )
  const directives = { ...CONTENT_SECURITY_POLICY, scriptSrc: [...CONTENT_SECURITY_POLICY.scriptSrc, ...hashes] }
  return Object.entries(directives)
    .map(([name, values]) => `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${values.join(' ')}`)
    .join(';')
}
