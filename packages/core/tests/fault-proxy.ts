import { once } from 'node:events'
import net from 'node:net'
import { setImmediate } from 'node:timers/promises'

import { vi } from 'vitest'

/** A proxy between a client and a server that lets a test break their connections. */
export interface FaultProxy extends AsyncDisposable {
  /** The server's URL with the address of the proxy. */
  readonly url: string
  /** Drops all traffic on the open connections without closing them, as if a cable were pulled. */
  readonly blackhole: () => void
  /** Does the same to the first connection on which a client sends this text, from this text on. */
  readonly blackholeAt: (text: string) => void
  /** Drops the answers on the first connection on which a client sends this text. The server still receives everything. */
  readonly dropAnswersFrom: (text: string) => void
  /** Closes connections whose answers are dropped, on the client's side only: the server executes all that it received. */
  readonly closeUnanswered: () => void
  /** Everything that clients sent and the proxy dropped. */
  readonly dropped: () => string
  /** Resolves once the proxy has dropped this text of a client. */
  readonly whenDropped: (text: string) => Promise<void>
  /** Resolves once every client has closed its side. */
  readonly whenClientsClosed: () => Promise<unknown>
}

interface Pair {
  readonly client: net.Socket
  readonly upstream: net.Socket
  isCut: boolean
  isUnanswered: boolean
}

export async function startFaultProxy(serverUrl: string): Promise<FaultProxy> {
  const server = new URL(serverUrl)
  const pairs = new Set<Pair>()
  const unanswered = new Set<Pair>()
  const left: Promise<void>[] = []
  const dropped: Buffer[] = []
  let trigger: string | undefined
  let isDroppingAnswers = false
  // Half-open connections are allowed, so a black-holed client does not even see the server's end of connection.
  const proxy = net.createServer({ allowHalfOpen: true }, (client) => {
    const pair = {
      client,
      upstream: net.connect(Number(server.port), server.hostname),
      isCut: false,
      isUnanswered: false,
    }
    pairs.add(pair)
    left.push(new Promise((resolve) => client.once('end', resolve).once('close', resolve)))
    client.on('data', (bytes) => {
      if (trigger !== undefined && bytes.includes(trigger)) {
        trigger = undefined
        if (isDroppingAnswers) {
          pair.isUnanswered = true
          unanswered.add(pair)
        } else pair.isCut = true
      }
      if (pair.isCut) dropped.push(bytes)
      else pair.upstream.write(bytes)
    })
    pair.upstream.on('data', (bytes) => {
      if (!pair.isCut && !pair.isUnanswered) client.write(bytes)
    })
    for (const socket of [client, pair.upstream]) socket.on('error', () => undefined)
    client.on('end', () => pair.isCut || client.destroy())
    pair.upstream.on('close', () => pair.isCut || client.destroy())
    client.on('close', () => {
      pairs.delete(pair)
      if (!pair.isUnanswered) pair.upstream.destroy()
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String((proxy.address() as net.AddressInfo).port)
  const textDropped = (): string => Buffer.concat(dropped).toString('latin1')
  return {
    url: url.href,
    blackhole: () => {
      for (const pair of pairs) pair.isCut = true
    },
    blackholeAt: (text) => {
      trigger = text
      isDroppingAnswers = false
    },
    dropAnswersFrom: (text) => {
      trigger = text
      isDroppingAnswers = true
    },
    closeUnanswered: () => {
      for (const { client } of unanswered) client.destroy()
    },
    dropped: textDropped,
    whenDropped: async (text) => {
      while (!textDropped().includes(text)) await setImmediate()
    },
    whenClientsClosed: () => Promise.all(left),
    async [Symbol.asyncDispose]() {
      for (const { client } of pairs) client.destroy()
      for (const { upstream } of unanswered) upstream.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}

/** The URL with settings that override those of `createPool` and `Listener`. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const changed = new URL(url)
  for (const [name, value] of Object.entries(settings)) changed.searchParams.set(name, value)
  return changed.href
}

/** Fakes the driver's timers, so that a query without an answer times out at once when the test advances them. */
export function fakeTimers(): Disposable & { readonly advance: (ms: number) => Promise<void> } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  return {
    advance: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}
