import { once } from 'node:events'
import net from 'node:net'

import type { SeededRandom } from './seeded-random.ts'

/** When a connection is cut, relative to a message of the client. */
type Moment = 'before' | 'during' | 'after'

/**
 * A proxy between a client and Postgres that cuts connections: before a message reaches the server, while the server works on it,
 * or when the answer is on its way back. The server executes what it received, even if the answer is lost.
 */
export class LossyProxy implements AsyncDisposable {
  readonly #server: net.Server
  readonly #sockets = new Set<net.Socket>()
  readonly #random: SeededRandom
  #url = ''
  /** The probability that a message is cut. */
  lossRate = 0
  isClosed = false
  readonly cuts: Record<Moment, number> = { before: 0, during: 0, after: 0 }

  private constructor(target: URL, random: SeededRandom) {
    this.#random = random
    this.#server = net.createServer((client) => this.#join(client, target))
  }

  static async start(url: string, random: SeededRandom): Promise<LossyProxy> {
    const target = new URL(url)
    const proxy = new LossyProxy(target, random)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    target.hostname = '127.0.0.1'
    const address = new URL(url)
    address.hostname = '127.0.0.1'
    address.port = String((proxy.#server.address() as net.AddressInfo).port)
    proxy.#url = address.href
    return proxy
  }

  get url(): string {
    return this.#url
  }

  /** Cuts all connections and accepts no new ones, as if the database were gone. */
  close(): void {
    this.isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #join(client: net.Socket, target: URL): void {
    if (this.isClosed) {
      client.destroy()
      return
    }
    const upstream = net.connect(Number(target.port), target.hostname)
    let isLosingAnswer = false
    // The first messages establish the session, and are never cut.
    let messages = 0
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => this.#sockets.delete(socket))
    }
    client.on('data', (bytes) => {
      messages += 1
      const moment = messages > 3 && this.#random.chance(this.lossRate) ? this.#moment() : undefined
      if (moment === 'before') {
        client.destroy()
        upstream.destroy()
        return
      }
      if (moment === 'after') isLosingAnswer = true
      upstream.write(bytes)
      // The server does not notice: it executes what it received, and fails only when it answers.
      if (moment === 'during') client.destroy()
    })
    upstream.on('data', (bytes) => {
      if (isLosingAnswer) client.destroy()
      else if (!client.destroyed) client.write(bytes)
    })
    client.on('close', () => upstream.end())
    upstream.on('close', () => client.destroy())
  }

  #moment(): Moment {
    const moment = this.#random.pick<Moment>(['before', 'during', 'after']) ?? 'before'
    this.cuts[moment] += 1
    return moment
  }
}
