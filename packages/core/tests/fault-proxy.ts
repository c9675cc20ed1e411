import { once } from 'node:events'
import net from 'node:net'
import { setImmediate } from 'node:timers/promises'

import { vi } from 'vitest'

/** Stands between a client and a server, and lets the test break what is between them. */
export interface FaultProxy extends AsyncDisposable {
  /** The address of the server, by way of the proxy. */
  readonly url: string
  /** From now on nothing comes through on the connections there are, and nobody is told: as when a cable is pulled. */
  readonly blackhole: () => void
  /** The same for the first connection on which a client says this. */
  readonly blackholeAt: (text: string) => void
  /** The first connection on which a client says this is heard by the server, and never gets an answer. */
  readonly deafenAt: (text: string) => void
  /** Clients that get no answers lose their connection. Their server is not told, and does all that it heard. */
  readonly hangUp: () => void
  /** Everything that clients sent into the black hole. */
  readonly swallowed: () => string
  /** A client has sent this into the black hole. */
  readonly whenSwallowed: (text: string) => Promise<void>
  /** Every client that ever came has closed its side. */
  readonly whenLeft: () => Promise<unknown>
}

interface Pair {
  readonly client: net.Socket
  readonly upstream: net.Socket
  isCut: boolean
  isDeaf: boolean
}

export async function startFaultProxy(serverUrl: string): Promise<FaultProxy> {
  const server = new URL(serverUrl)
  const pairs = new Set<Pair>()
  const deafened = new Set<Pair>()
  const left: Promise<void>[] = []
  const swallowed: Buffer[] = []
  let trigger: string | undefined
  let isDeafening = false
  // Half-open: who falls into the black hole is not even told goodbye.
  const proxy = net.createServer({ allowHalfOpen: true }, (client) => {
    const pair = { client, upstream: net.connect(Number(server.port), server.hostname), isCut: false, isDeaf: false }
    pairs.add(pair)
    left.push(new Promise((resolve) => client.once('end', resolve).once('close', resolve)))
    client.on('data', (bytes) => {
      if (trigger !== undefined && bytes.includes(trigger)) {
        trigger = undefined
        if (isDeafening) {
          pair.isDeaf = true
          deafened.add(pair)
        } else pair.isCut = true
      }
      if (pair.isCut) swallowed.push(bytes)
      else pair.upstream.write(bytes)
    })
    pair.upstream.on('data', (bytes) => {
      if (!pair.isCut && !pair.isDeaf) client.write(bytes)
    })
    for (const socket of [client, pair.upstream]) socket.on('error', () => undefined)
    client.on('end', () => pair.isCut || client.destroy())
    pair.upstream.on('close', () => pair.isCut || client.destroy())
    client.on('close', () => {
      pairs.delete(pair)
      if (!pair.isDeaf) pair.upstream.destroy()
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String((proxy.address() as net.AddressInfo).port)
  const textSwallowed = (): string => Buffer.concat(swallowed).toString('latin1')
  return {
    url: url.href,
    blackhole: () => {
      for (const pair of pairs) pair.isCut = true
    },
    blackholeAt: (text) => {
      trigger = text
      isDeafening = false
    },
    deafenAt: (text) => {
      trigger = text
      isDeafening = true
    },
    hangUp: () => {
      for (const { client } of deafened) client.destroy()
    },
    swallowed: textSwallowed,
    whenSwallowed: async (text) => {
      while (!textSwallowed().includes(text)) await setImmediate()
    },
    whenLeft: () => Promise.all(left),
    async [Symbol.asyncDispose]() {
      for (const { client } of pairs) client.destroy()
      for (const { upstream } of deafened) upstream.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}

/** The address with other settings than `createPool` and `Listener` have. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const changed = new URL(url)
  for (const [name, value] of Object.entries(settings)) changed.searchParams.set(name, value)
  return changed.href
}

/** The timers of the driver, moved by the test: a query without an answer times out, and nobody waits for the time limit. */
export function holdTimers(): Disposable & { readonly advance: (ms: number) => Promise<void> } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  return {
    advance: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}
