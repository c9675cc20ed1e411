import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import { describe, expect, test } from 'vitest'

import { exchange } from './raw-exchange.ts'
import { ADMIN_KEY, createTestApp, type TestApp } from './test-app.ts'

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket
}

async function textOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** An app whose readiness check waits until the test answers it. */
async function hesitant(): Promise<{ world: TestApp; asked: Promise<void>; answer: () => void }> {
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<readonly string[]>()]
  const world = await createTestApp({
    readiness: () => {
      asked.resolve()
      return answered.promise
    },
  })
  return { world, asked: asked.promise, answer: () => answered.resolve([]) }
}

const READY = 'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'

describe('a server that closes', () => {
  test('finishes the requests in progress, and then closes their connections', async () => {
    const { world, asked, answer } = await hesitant()
    await using app = world
    const closing = whenClosing(app)
    const socket = await open(await app.listen())
    socket.write(READY)
    await asked

    const closed = app.app.close()
    await closing
    answer()

    const text = await textOf(socket)
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    expect(text).toMatch(/connection: close/i)
    await closed
  })

  test('refuses later requests with a problem, and closes their connections too', async () => {
    await using world = await createTestApp()
    const held = Promise.withResolvers<void>()
    const closing = whenClosing(world, held.promise)
    const url = await world.listen()

    const closed = world.app.close()
    await closing
    const answer = await exchange(url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    held.resolve()

    expect(answer.status).toBe(503)
    expect(answer.head).toMatch(/retry-after: 1/i)
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'unavailable' })
    await closed
  })

  test('does not wait for connections without a complete request: new, idle, or with half a request', async () => {
    await using world = await createTestApp()
    const url = await world.listen()
    const [fresh, idle, half] = [await open(url), await open(url), await open(url)]
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(idle, 'data')
    half.write('GET /heal')
    await whenAccepted(world, 3)

    await world.app.close()

    for (const socket of [fresh, idle, half]) await textOf(socket).catch(() => undefined)
  })

  test('ends event streams', async () => {
    await using world = await createTestApp()
    const client = await fetch(`${await world.listen()}/api/v1/events`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    })

    await world.app.close()

    expect(await client.text()).toMatch(/^retry: 2000\nid: .*\n\n$/)
  })

  test('may be closed twice, and without having listened', async () => {
    await using world = await createTestApp()

    await world.app.close()
    await world.app.close()
  })
})

/** Resolves once the app has begun to close. The app closes further once `held` resolves. */
function whenClosing({ app }: TestApp, held?: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    app.addHook('preClose', async () => {
      resolve()
      await held
    })
  })
}

async function whenAccepted({ app }: TestApp, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (): void => {
    app.server.getConnections((_error, open) => (open >= count ? resolve() : setImmediate(look)))
  }
  look()
  await promise
}
