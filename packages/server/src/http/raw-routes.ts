import { paramsIn } from '@carillon/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { routerPath } from './operations.ts'
import type { ServedModule } from './served-operations.ts'

/**
 * Serves what is no operation: webhooks, protocols of their own. The handler gets the request as `fetch` knows it and proves its caller
 * itself. The body is read first, up to the limit of every body. Limits, headers, log lines and problems are those of all routes.
 */
export async function serveRawRoutes(app: FastifyInstance, modules: readonly ServedModule[]): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)
    scope.addHook('onSend', async (_request, reply) => {
      if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    })
    for (const { method, path, handle } of modules.flatMap(({ rawRoutes }) => rawRoutes)) {
      scope.route({
        method,
        url: routerPath(path),
        exposeHeadRoute: false,
        config: { access: 'own' },
        handler: async (request, reply) => reply.send(await handle(toRequest(request, reply), paramsOf(path, request))),
      })
    }
  })
}

function paramsOf(path: string, { params }: FastifyRequest): Readonly<Record<string, string>> {
  const found = params as Readonly<Record<string, string>>
  return Object.fromEntries(paramsIn(path).map((name) => [name, found[name] ?? '']))
}

/** The signal of the request fires when the connection closes. */
function toRequest(request: FastifyRequest, reply: FastifyReply): Request {
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort())
  const { body } = request as { readonly body?: Buffer }
  return new Request(urlOf(request), {
    method: request.method,
    headers: Object.entries(request.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    ),
    signal: closed.signal,
    ...(body === undefined ? {} : { body: new Uint8Array(body) }),
  })
}

/** The client chooses the host of the URL, so a handler must not trust it. */
function urlOf({ host, url }: FastifyRequest): string {
  return URL.canParse(`http://${host}${url}`) ? `http://${host}${url}` : `http://localhost${url}`
}
