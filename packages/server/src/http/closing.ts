import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { FastifyInstance } from 'fastify'

import type { AppDeps } from './app-deps.ts'
import { ProblemError } from './problems/problem-error.ts'

/** For how long a request may go on once the app closes. What takes longer is cut. */
const GRACE_MS = 10_000

/**
 * Closes in order: what is under way is answered, what comes then is refused, and no connection is left open. Node waits
 * for connections on which nothing was ever asked, such as browsers open in advance, so these are counted here.
 */
export function closeGracefully(app: FastifyInstance, { clock }: Pick<AppDeps, 'clock'>): void {
  const sockets = new OpenSockets(app.server)
  let isClosing = false
  let cancelCut = (): void => undefined

  app.addHook('onRequest', async () => {
    if (isClosing) throw new ProblemError('unavailable', 'the service is stopping: ask again soon, or another server')
  })
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing) reply.header('connection', 'close')
  })
  app.addHook('preClose', async () => {
    isClosing = true
    sockets.closeWhenIdle()
    cancelCut = clock.after(GRACE_MS, () => sockets.cut())
  })
  app.addHook('onClose', async () => cancelCut())
}

/** The connections of a server, each with how many of its requests are being answered. */
class OpenSockets {
  readonly #busy = new Map<Socket, number>()
  #isClosing = false

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#busy.set(socket, 0)
      socket.once('close', () => this.#busy.delete(socket))
    })
    server.on('request', ({ socket }, response: ServerResponse) => {
      this.#count(socket, 1)
      response.once('close', () => this.#count(socket, -1))
    })
  }

  closeWhenIdle(): void {
    this.#isClosing = true
    for (const [socket, requests] of this.#busy) if (requests === 0) socket.destroy()
  }

  cut(): void {
    for (const socket of this.#busy.keys()) socket.destroy()
  }

  #count(socket: Socket, change: number): void {
    const requests = this.#busy.get(socket)
    if (requests === undefined) return
    this.#busy.set(socket, requests + change)
    // Ended, not destroyed: the last bytes of the answer may still be on their way.
    if (this.#isClosing && requests + change === 0) socket.end()
  }
}
