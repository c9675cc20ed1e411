import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createNetServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** What a server received, whole. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** Names as they were written, in order. */
  readonly rawHeaders: readonly string[]
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface LocalServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  readonly port: number
  /** Accepted so far, used or not. */
  readonly connectionCount: number
}

export interface LocalHttpServer extends LocalServer {
  readonly requests: readonly ReceivedRequest[]
}

/** A real HTTP server on loopback; it answers after the whole request has come. */
export async function startHttpServer(
  answer: (response: ServerResponse, request: ReceivedRequest, count: number) => void,
): Promise<LocalHttpServer> {
  const requests: ReceivedRequest[] = []
  const server = createHttpServer((message, response) => {
    const chunks: Buffer[] = []
    message.on('error', () => undefined)
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('end', () => {
      const { method = '', url: path = '', rawHeaders, headers } = message
      const request = { method, path, rawHeaders, headers, body: Buffer.concat(chunks) }
      requests.push(request)
      answer(response, request, requests.length)
    })
  })
  return Object.assign(await listen(server), { requests })
}

/** A server that says whatever a socket can. */
export async function startNetServer(onConnection: (socket: Socket) => void): Promise<LocalServer> {
  return listen(
    createNetServer((socket) => {
      socket.on('error', () => undefined)
      onConnection(socket)
    }),
  )
}

/** A port of loopback on which nobody listens. */
export async function closedPort(): Promise<number> {
  await using server = await startNetServer(() => undefined)
  return server.port
}

async function listen(server: Server): Promise<LocalServer> {
  const sockets = new Set<Socket>()
  let connectionCount = 0
  server.on('connection', (socket) => {
    connectionCount++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    get connectionCount() {
      return connectionCount
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
