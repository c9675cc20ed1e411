import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { REQUEST_BODY_MAX_BYTES } from '@carillon/api'
import type { Clock } from '@carillon/core'
import type { FastifyHttpOptions, FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

import { invalidInput, problemAnswer, ProblemError, sendProblem } from './problems.ts'
import { logRefused } from './request-log.ts'

const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 15_000
/** The most open connections. Further ones are refused, so that the open ones can be served. */
const CONNECTIONS_MAX = 10_000
/** How often Node looks for requests that arrive too slowly. */
const CHECK_EVERY_MS = 5000
/**
 * The longest path parameter that the router accepts. A whole URL can be no longer, so the router never refuses an id for its
 * length: core does, with a better message.
 */
const PARAM_MAX_LENGTH = 16_384
/** How long requests in progress may take once the app closes. Then their connections are cut. */
const GRACE_MS = 10_000

export function serverOptions(logger: Logger): FastifyHttpOptions<Server> {
  return {
    // Fastify's own log lines would hold URLs.
    logger: false,
    // A request must not choose its id, which is written to the log.
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    trustProxy: false,
    bodyLimit: REQUEST_BODY_MAX_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      // Checked by `refuseMissingHost`, which answers with a problem.
      requireHostHeader: false,
    },
    routerOptions: { maxParamLength: PARAM_MAX_LENGTH },
    // `closeGracefully` answers with a problem instead.
    return503OnClosing: false,
    clientErrorHandler: createClientErrorHandler(logger),
    frameworkErrors: (error, request, reply) => {
      logRefused(logger, request, reply)
      reply.header('x-request-id', request.id)
      sendProblem(error, request, reply)
    },
  }
}

/** Refuses too many connections and requests without a Host, for all routes, and closes connections when the app closes. */
export function guardConnections(app: FastifyInstance, { clock }: { readonly clock: Clock }): void {
  app.server.maxConnections = CONNECTIONS_MAX
  closeGracefully(app, clock)
  refuseMissingHost(app)
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

/** Answers input that Node cannot parse as a request. There is neither a request nor a reply, so the answer is written raw. */
function createClientErrorHandler(logger: Logger): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    const problem = parserProblem('code' in error ? error.code : undefined)
    const { status, headers, body } = problemAnswer(problem, requestId)
    const text = JSON.stringify(body)
    const lines = Object.entries({
      ...headers,
      'content-length': String(Buffer.byteLength(text)),
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}`)
    socket.end([`HTTP/1.1 ${status} ${REASONS[status] ?? ''}`, ...lines, '', text].join('\r\n'))
    logger.info({ requestId, method: null, route: null, status, problem: problem.code }, 'request')
  }
}

function parserProblem(code: unknown): ProblemError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError('headers_too_large', 'expected at most 16 KiB of path, query and headers, got more')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ProblemError(
        'request_timeout',
        'expected a whole request within 30 s, got a part of it: send it again',
      )
    default:
      return new ProblemError('invalid_input', 'expected an HTTP/1.1 request, got something else')
  }
}

/** Answers a request without Host as a problem, and ignores an unknown Expect header. Node would answer both by itself. */
function refuseMissingHost(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.server.emit('request', request, response)
  })
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.headers.host !== undefined || raw.httpVersion === '1.0') return
    throw invalidInput([{ field: 'Host', message: 'expected the name of the host, got nothing: send it' }])
  })
}

/**
 * Closes without losing answers: requests in progress are answered, later ones are refused, and no connection stays open. Node
 * itself would wait for connections that never sent a request, such as browsers open in advance, so this tracks connections.
 */
function closeGracefully(app: FastifyInstance, clock: Clock): void {
  const sockets = new OpenSockets(app.server)
  let isClosing = false
  let cancelCut = (): void => undefined

  app.addHook('onRequest', async () => {
    if (!isClosing) return
    throw new ProblemError('unavailable', 'this server is stopping: try again soon, or use another one')
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

/** The open connections of a server, each with the number of its unanswered requests. */
class OpenSockets {
  readonly #requests = new Map<Socket, number>()
  #isClosing = false

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#requests.set(socket, 0)
      socket.once('close', () => this.#requests.delete(socket))
    })
    server.on('request', ({ socket }, response: ServerResponse) => {
      this.#count(socket, 1)
      response.once('close', () => this.#count(socket, -1))
    })
  }

  closeWhenIdle(): void {
    this.#isClosing = true
    for (const [socket, requests] of this.#requests) if (requests === 0) socket.destroy()
  }

  cut(): void {
    for (const socket of this.#requests.keys()) socket.destroy()
  }

  #count(socket: Socket, change: number): void {
    const requests = this.#requests.get(socket)
    if (requests === undefined) return
    this.#requests.set(socket, requests + change)
    // `end`, not `destroy`: the last bytes of the answer may still be on their way.
    if (this.#isClosing && requests + change === 0) socket.end()
  }
}
