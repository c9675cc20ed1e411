import { getEventListeners, once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { describe, expect, test } from 'vitest'

import { headerOf } from '../src/index.ts'
import { closedPort, startHttpServer, startNetServer } from './local-server.ts'
import { openClient, requestTo, sendTo } from './requests.ts'

describe('a request', () => {
  test('arrives as it was given', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient()
    const headers = ['X-First', '1', 'x-second', '2', 'X-First', '3']

    await sendTo(client, `${server.origin}/a/b?c=d`, { method: 'PUT', headers, body: '{"é":1}' })
    await sendTo(client, server.origin, { body: Uint8Array.of(0, 255) })

    const [text, bytes] = server.requests
    expect(text).toMatchObject({ method: 'PUT', path: '/a/b?c=d', body: Buffer.from('{"é":1}') })
    expect(text?.rawHeaders.join(' ')).toContain('X-First 1 x-second 2 X-First 3')
    expect(bytes?.body).toEqual(Buffer.of(0, 255))
  })

  test.each([
    ['X-A', 'b\r\nHost: evil.example'],
    ['X A', 'b'],
    ['X-A', 'b\0'],
    ['Transfer-Encoding', 'chunked'],
  ])('with the header %j: %j is malformed, and nothing is sent', async (name, value) => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient()

    const end = await sendTo(client, server.origin, { headers: [name, value] })

    expect(end).toEqual({ kind: 'malformed', message: expect.stringContaining('invalid') as string })
    expect(server.requests).toHaveLength(0)
  })
})

describe('an answer', () => {
  test('has its status, its headers and its body, whatever the status', async () => {
    await using server = await startHttpServer((response) =>
      response.writeHead(418, { 'X-One': 'a', 'Set-Cookie': ['b', 'c'] }).end('short and stout'),
    )
    await using client = openClient()

    const end = await sendTo(client, server.origin)

    if (end.kind !== 'answered') throw new Error(`expected an answer, got ${end.kind}`)
    expect(end.answer).toMatchObject({ status: 418, body: Buffer.from('short and stout'), isCut: false })
    expect(headerOf(end.answer, 'x-one')).toBe('a')
    expect(headerOf(end.answer, 'set-cookie')).toBe('b')
    expect(headerOf(end.answer, 'x-none')).toBeUndefined()
  })

  test.each([301, 302, 303, 307, 308])('that redirects is returned and not followed: %i', async (status) => {
    await using elsewhere = await startHttpServer((response) => response.end())
    await using server = await startHttpServer((response) =>
      response.writeHead(status, { Location: elsewhere.origin }).end(),
    )
    await using client = openClient()

    expect(await sendTo(client, server.origin, { method: 'GET' })).toMatchObject({ answer: { status } })
    expect(elsewhere.connectionCount).toBe(0)
  })

  test.each([
    [5, 3, 'hel', true],
    [5, 5, 'hello', false],
    [10, 10, 'hello', false],
    [4, 4, 'hell', true],
    [4, 0, '', true],
  ])('of 5 bytes, of which %i are read and %i kept, has the body %j', async (readBytes, keptBytes, body, isCut) => {
    await using server = await startHttpServer((response) => response.end('hello'))
    await using client = openClient()

    const end = await sendTo(client, server.origin, { readBytes, keptBytes })

    expect(end).toMatchObject({ kind: 'answered', answer: { body: Buffer.from(body), isCut } })
  })

  test('that is longer than is read ends at once, and its connection is closed', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer((response) => {
      response.writeHead(200).write('endless')
      resolve(response)
    })
    await using client = openClient()

    const end = sendTo(client, server.origin, { readBytes: 6, keptBytes: 6 })
    const isClosed = once(await arrived, 'close')

    expect(await end).toMatchObject({ answer: { body: Buffer.from('endles'), isCut: true } })
    await isClosed
  })

  test('that breaks off has its status and what had arrived', async () => {
    await using server = await startNetServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')),
    )
    await using client = openClient()

    expect(await sendTo(client, server.origin)).toMatchObject({
      kind: 'broken',
      answer: { status: 200, body: Buffer.from('half'), isCut: true },
    })
  })
})

describe('a connection that fails', () => {
  test('is returned as an error with its code', async () => {
    await using client = openClient()

    expect(await sendTo(client, `http://127.0.0.1:${await closedPort()}`)).toEqual({
      kind: 'broken',
      error: expect.objectContaining({ code: 'ECONNREFUSED' }) as Error,
      answer: undefined,
    })
  })

  test.each(['GET', 'PUT', 'DELETE', 'POST'] as const)(
    'during a later %s does not send the request again',
    async (method) => {
      let requestCount = 0
      await using server = await startNetServer((socket) =>
        socket.on('data', () => {
          requestCount++
          if (requestCount === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
          else socket.resetAndDestroy()
        }),
      )
      await using client = openClient({ connections: 1 })

      expect(await sendTo(client, server.origin, { method })).toMatchObject({ kind: 'answered' })
      expect(await sendTo(client, server.origin, { method })).toMatchObject({ kind: 'broken' })

      expect(requestCount).toBe(2)
      expect(server.connectionCount).toBe(1)
    },
  )
})

describe('the connections to one origin', () => {
  test('are reused', async () => {
    await using server = await startHttpServer((response) => response.end('fine'))
    await using client = openClient({ connections: 1 })

    for (let call = 1; call <= 5; call++) await sendTo(client, server.origin)

    expect(server.requests).toHaveLength(5)
    expect(server.connectionCount).toBe(1)
  })

  test('are limited, and those to another origin are not used up by them', async () => {
    const held: ServerResponse[] = []
    const { promise: areHeld, resolve } = Promise.withResolvers<void>()
    await using busy = await startHttpServer((response) => {
      held.push(response)
      if (held.length === 2) resolve()
      if (held.length > 2) response.end()
    })
    await using free = await startHttpServer((response) => response.end())
    await using client = openClient({ connections: 2 })

    const ends = Array.from({ length: 6 }, () => sendTo(client, busy.origin))
    await areHeld
    expect(await sendTo(client, free.origin)).toMatchObject({ kind: 'answered' })
    expect(busy.requests).toHaveLength(2)
    for (const response of held.slice()) response.end()

    for (const end of await Promise.all(ends)) expect(end).toMatchObject({ kind: 'answered' })
    expect(busy.connectionCount).toBe(2)
  })

  test.each([0, -1, 1.5, Number.NaN])('cannot be limited to %d', (connections) => {
    expect(() => openClient({ connections })).toThrow(
      `expected \`connections\` to be a whole number of at least 1, got ${connections}`,
    )
  })
})

describe('a signal', () => {
  test.each<[string, (response: ServerResponse) => void]>([
    ['before the headers', () => undefined],
    ['in the middle of the body', (response) => response.writeHead(200, { 'Content-Length': '10' }).write('half')],
  ])('that fires %s ends the request and closes its connection', async (_when, hang) => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer((response) => {
      hang(response)
      resolve(response)
    })
    await using client = openClient()
    const controller = new AbortController()

    const end = client.send(requestTo(server.origin), controller.signal)
    const isClosed = once(await arrived, 'close')
    controller.abort()

    expect(await end).toEqual({ kind: 'aborted' })
    await isClosed
  })

  test('that fires while the connection is made ends the request at once', async () => {
    const { promise: connected, resolve } = Promise.withResolvers<Socket>()
    // Never answers the handshake of TLS.
    await using server = await startNetServer((socket) => socket.once('data', () => resolve(socket)))
    await using client = openClient()
    const controller = new AbortController()

    const end = client.send(requestTo(`https://127.0.0.1:${server.port}/`), controller.signal)
    await connected
    controller.abort()

    expect(await end).toEqual({ kind: 'aborted' })
  })

  test('that fires while the request waits for a connection drops it, and others go on', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer((response, _request, count) => {
      if (count === 1) resolve(response)
      else response.end()
    })
    await using client = openClient({ connections: 1 })
    const controller = new AbortController()

    const first = sendTo(client, `${server.origin}/first`)
    const holding = await arrived
    const second = client.send(requestTo(`${server.origin}/second`), controller.signal)
    controller.abort()
    expect(await second).toEqual({ kind: 'aborted' })
    holding.end()
    expect(await first).toMatchObject({ kind: 'answered' })
    expect(await sendTo(client, `${server.origin}/third`)).toMatchObject({ kind: 'answered' })

    expect(server.requests.map(({ path }) => path)).toEqual(['/first', '/third'])
    expect(server.connectionCount).toBe(1)
  })

  test('that has fired already sends nothing', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient()

    expect(await client.send(requestTo(server.origin), AbortSignal.abort())).toEqual({ kind: 'aborted' })
    expect(server.connectionCount).toBe(0)
  })

  test('that serves many requests is not listened to after they ended', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient({ connections: 1 })
    const controller = new AbortController()

    for (let call = 1; call <= 3; call++) await client.send(requestTo(server.origin), controller.signal)

    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    controller.abort()
    expect(await sendTo(client, server.origin)).toMatchObject({ kind: 'answered' })
    expect(server.connectionCount).toBe(1)
  })
})

describe('a client that closes', () => {
  test('ends what is under way, and closes its connections', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer(resolve)
    await using client = openClient({ connections: 1 })

    const underWay = sendTo(client, server.origin)
    const waiting = sendTo(client, server.origin)
    const isClosed = once(await arrived, 'close')
    await client.close()

    expect(await underWay).toMatchObject({ kind: 'broken' })
    expect(await waiting).toMatchObject({ kind: 'broken' })
    await isClosed
    expect(server.requests).toHaveLength(1)
  })

  test('sends nothing afterwards, and may be closed again', async () => {
    await using server = await startHttpServer((response) => response.end())
    const client = openClient()
    await client.close()

    expect(await sendTo(client, server.origin)).toMatchObject({ kind: 'broken' })
    await client.close()
    expect(server.connectionCount).toBe(0)
  })
})
