import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

interface LocalServer {
  readonly port: number
  /** The path of the first request. */
  readonly called: Promise<string>
}

/** A target for a schedule. It answers once `held` resolves. */
export async function startLocalServer(held?: Promise<void>): Promise<LocalServer> {
  const { promise: called, resolve } = Promise.withResolvers<string>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    resolve(request.url ?? '')
    await held
    response.end('{}')
  }
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, called }
}
