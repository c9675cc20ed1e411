import { createHash } from 'node:crypto'

import { createOpenApi } from '@carillon/api'
import scalar from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'

import { invalidInput } from '../problems/problem-error.ts'
import { CONTENT_SECURITY_POLICY } from '../security-headers.ts'

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g

/** The document at `/openapi.json`, and a page that shows it at `/docs`. Nothing of it comes from elsewhere. */
export async function serveReference(app: FastifyInstance, version: string): Promise<void> {
  // Relative to itself: the host that a request names is anybody's claim.
  const document = JSON.stringify(createOpenApi({ version, url: '/' }))
  app.get('/openapi.json', async (_request, reply) => reply.type('application/json; charset=utf-8').send(document))

  await app.register(async (scope) => {
    scope.addHook('onRequest', async ({ host, url }, reply) => {
      // The page makes a URL of it, which would throw.
      if (!URL.canParse(`http://${host}`)) {
        throw invalidInput([{ field: 'Host', message: 'expected a host, got what is none' }])
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
        // Each of these would lead to a service of somebody else.
        showDeveloperTools: 'never',
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    })
  })
}

/** As everywhere, and the scripts that the page itself holds, by their hashes: no other may run. */
function policyOf(page: string): string {
  const hashes = [...page.matchAll(INLINE_SCRIPT)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  )
  const directives = { ...CONTENT_SECURITY_POLICY, scriptSrc: [...CONTENT_SECURITY_POLICY.scriptSrc, ...hashes] }
  return Object.entries(directives)
    .map(([name, values]) => `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${values.join(' ')}`)
    .join(';')
}
