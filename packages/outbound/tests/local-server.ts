import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import {
  createServer as createNetServer,
  type AddressInfo,
  type ListenOptions,
  type Server,
  type Socket,
} from 'node:net'
import { networkInterfaces } from 'node:os'

/** A complete request that a server received. */
interface ReceivedRequest {
  readonly method: string
  readonly path: string
  /** Names and values as they were written, in their order. */
  readonly rawHeaders: readonly string[]
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface LocalServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  readonly port: number
  /** How many connections the server has accepted, whether they were used or not. */
  readonly connectionCount: number
}

export interface LocalHttpServer extends LocalServer {
  readonly requests: readonly ReceivedRequest[]
}

type GiveAnswer = (response: ServerResponse, request: ReceivedRequest, count: number) => void

/** A real HTTP server on loopback. It answers once the whole request has arrived. */
export async function startHttpServer(answer: GiveAnswer): Promise<LocalHttpServer> {
  const requests: ReceivedRequest[] = []
  return Object.assign(await listen(createHttpServer(receiver(requests, answer))), { requests })
}

/** Like `startHttpServer`, with TLS. */
export async function startHttpsServer(options: ServerOptions, answer: GiveAnswer): Promise<LocalHttpServer> {
  const requests: ReceivedRequest[] = []
  return Object.assign(await listen(createHttpsServer(options, receiver(requests, answer))), { requests })
}

function receiver(requests: ReceivedRequest[], answer: GiveAnswer) {
  return (message: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = []
    message.on('error', () => undefined)
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('end', () => {
      const { method = '', url: path = '', rawHeaders, headers } = message
      const request = { method, path, rawHeaders, headers, body: Buffer.concat(chunks) }
      requests.push(request)
      answer(response, request, requests.length)
    })
  }
}

/** A server that can send any bytes. */
export async function startNetServer(onConnection: (socket: Socket) => void): Promise<LocalServer> {
  return listen(
    createNetServer((socket) => {
      socket.on('error', () => undefined)
      onConnection(socket)
    }),
  )
}

/** Listens on every address of this machine, counts connections and closes them. */
export async function startCanary(): Promise<LocalServer> {
  const ipv4 = await listen(createNetServer(sendAway), { port: 0, host: '0.0.0.0' })
  if (!hasIpv6()) return ipv4
  const ipv6 = await listen(createNetServer(sendAway), { port: ipv4.port, host: '::', ipv6Only: true })
  return {
    origin: ipv4.origin,
    port: ipv4.port,
    get connectionCount() {
      return ipv4.connectionCount + ipv6.connectionCount
    },
    [Symbol.asyncDispose]: async () => {
      await ipv4[Symbol.asyncDispose]()
      await ipv6[Symbol.asyncDispose]()
    },
  }
}

function sendAway(socket: Socket): void {
  socket.on('error', () => undefined).destroy()
}

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ family }) => family === 'IPv6'))
}

/** A port of loopback on which no program listens. */
export async function closedPort(): Promise<number> {
  await using server = await startNetServer(() => undefined)
  return server.port
}

async function listen(server: Server, at: ListenOptions = { port: 0, host: '127.0.0.1' }): Promise<LocalServer> {
  const sockets = new Set<Socket>()
  let connectionCount = 0
  server.on('connection', (socket) => {
    connectionCount++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(at)
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
