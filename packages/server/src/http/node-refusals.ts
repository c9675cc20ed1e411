import type { IncomingMessage, ServerResponse } from 'node:http'

import type { FastifyInstance } from 'fastify'

import { invalidInput } from './problems/problem-error.ts'

/** For the options of the server: leaves to us what Node would refuse without saying why. */
export const LENIENT = { requireHostHeader: false }

/** Refuses a request without a host as a problem, and lets one pass that expects what nobody knows. */
export function refuseInsteadOfNode(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.server.emit('request', request, response)
  })
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.headers.host !== undefined || raw.httpVersion === '1.0') return
    throw invalidInput([{ field: 'Host', message: 'expected the host that is asked, got nothing: send it' }])
  })
}
