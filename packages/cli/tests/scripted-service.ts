import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** An HTTP server whose answers the test writes, for example to break a connection. */
export async function startScriptedService(
  answer: Answer,
): Promise<{ readonly url: string; readonly requests: readonly IncomingMessage[] } & AsyncDisposable> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answer(response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export function openStream(response: ServerResponse, ...events: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('retry: 2000\n\n')
  for (const event of events) response.write(event)
}

export function eventText(id: string, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
