/** The HTTP service that the targets call. It answers 200 at once. It runs in its own process and sends the bench its URL. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { argumentOf, endWithBench, tell } from './channel.ts'

export interface ReceiverReady {
  readonly origin: string
}

const { body } = argumentOf() as { readonly body: string }
const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, headers).end(body))
})
// This is longer than a measurement. A connection that closes between two requests would distort it.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  tell({ origin: `http://127.0.0.1:${port}` } satisfies ReceiverReady)
})
endWithBench(() => {
  server.closeAllConnections()
  return Promise.resolve()
})
