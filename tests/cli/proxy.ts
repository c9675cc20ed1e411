import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A proxy before a server. It runs a callback before it forwards a request, and another one after it has the answer. */
export async function startProxy(
  service: string,
  before: (request: IncomingMessage) => Promise<void>,
  after: (request: IncomingMessage) => Promise<void> = async () => {},
): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = await buffer(request)
      await before(request)
      const { method = 'GET', url = '', headers } = request
      const { 'content-type': contentType, authorization = '', 'if-match': ifMatch } = headers
      const { 'idempotency-key': idempotencyKey } = headers
      const answered = await fetch(new URL(url, service), {
        method,
        headers: {
          authorization,
          ...(contentType === undefined ? {} : { 'content-type': contentType }),
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
          ...(typeof idempotencyKey === 'string' ? { 'idempotency-key': idempotencyKey } : {}),
        },
        ...(body.length === 0 ? {} : { body }),
      })
      await after(request)
      response.writeHead(answered.status, { 'content-type': answered.headers.get('content-type') ?? '' })
      response.end(await answered.text())
    }
    answer().catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
