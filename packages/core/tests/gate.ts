import { once } from 'node:events'
import net from 'node:net'

/** A proxy that makes its server unreachable while it is shut, as during a restart. */
export interface Gate extends AsyncDisposable {
  /** The server's URL with the address of the gate. */
  readonly url: string
  /** Breaks every connection, and every new one, until the gate is opened. */
  readonly shut: () => void
  readonly open: () => void
}

export async function startGate(serverUrl: string): Promise<Gate> {
  const server = new URL(serverUrl)
  const sockets = new Set<net.Socket>()
  let isShut = false
  const gate = net.createServer((client) => {
    client.on('error', () => undefined)
    if (isShut) {
      client.destroy()
      return
    }
    const upstream = net.connect(Number(server.port), server.hostname)
    upstream.on('error', () => undefined)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.pipe(other)
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  gate.listen(0, '127.0.0.1')
  await once(gate, 'listening')
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String((gate.address() as net.AddressInfo).port)
  const shut = (): void => {
    isShut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    shut,
    open: () => {
      isShut = false
    },
    async [Symbol.asyncDispose]() {
      shut()
      gate.close()
      await once(gate, 'close')
    },
  }
}
