import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { closedPort, startHttpServer, startNetServer } from '@carillon/outbound/testing'
import { describe, expect, test } from 'vitest'

import { attemptAt, dispatchTo, httpTarget } from './attempt.ts'

const NETWORK = { kind: 'failed', error: { code: 'network' }, retryable: true }

describe('a network error is retried', () => {
  test('the attempt is retried if the port is closed', async () => {
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: `http://127.0.0.1:${await closedPort()}` })).toEqual({
      kind: 'failed',
      error: {
        code: 'network',
        message: 'expected a complete answer, got a network error: ECONNREFUSED',
        detail: { cause: 'ECONNREFUSED' },
      },
      retryable: true,
    })
  })

  test('the attempt is retried if the host name is unknown', async () => {
    await using target = httpTarget({ allowedHosts: ['*.invalid'] })

    expect(await dispatchTo(target, { url: 'http://nowhere.invalid/' })).toMatchObject(NETWORK)
  })

  test('the attempt is retried if the server does not use TLS', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: `https://127.0.0.1:${server.port}` })).toMatchObject(NETWORK)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['resets', (socket) => socket.resetAndDestroy()],
    ['closes', (socket) => socket.end()],
    ['speaks no HTTP', (socket) => socket.end('220 mail ready\r\n')],
    ['answers with endless headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(100_000)}`)],
    [
      'answers 101 unasked',
      (socket) => socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    ],
  ])('the attempt is retried if the other side %s after it received the request', async (_what, react) => {
    await using server = await startNetServer((socket) => socket.once('data', () => react(socket)))
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin, payload: {} })).toMatchObject(NETWORK)
    expect(server.connectionCount).toBe(1)
  })

  test('the attempt is retried if a success breaks off before its body is complete', async () => {
    await using server = await startNetServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')),
    )
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin })).toMatchObject(NETWORK)
  })

  test('the attempt is not retried if the body of a final failure breaks off', async () => {
    await using server = await startNetServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 100\r\n\r\nhalf')),
    )
    await using target = httpTarget()

    expect(await dispatchTo(target, { url: server.origin })).toMatchObject({
      error: { code: 'http_status', detail: { status: 413, body: 'half', truncated: true } },
      retryable: false,
    })
  })
})

describe('connections', () => {
  test('are reused', async () => {
    await using server = await startHttpServer((response) => response.end('ok'))
    await using target = httpTarget({ connections: 1 })

    for (let attempt = 1; attempt <= 5; attempt++) await dispatchTo(target, { url: server.origin, payload: {} })

    expect(server.requests).toHaveLength(5)
    expect(server.connectionCount).toBe(1)
  })

  test.each(['GET', 'POST'])(
    'that break during a later %s fail that attempt, and its request is not sent again',
    async (method) => {
      let requestCount = 0
      await using server = await startNetServer((socket) =>
        socket.on('data', () => {
          requestCount++
          if (requestCount === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
          else socket.resetAndDestroy()
        }),
      )
      await using target = httpTarget({ connections: 1 })

      expect(await dispatchTo(target, { url: server.origin, method })).toMatchObject({ kind: 'succeeded' })
      expect(await dispatchTo(target, { url: server.origin, method })).toMatchObject(NETWORK)

      expect(requestCount).toBe(2)
      expect(server.connectionCount).toBe(1)
    },
  )

  test('to one origin are limited, and further attempts wait', async () => {
    const held: ServerResponse[] = []
    const { promise: areHeld, resolve } = Promise.withResolvers<void>()
    await using server = await startHttpServer((response) => {
      held.push(response)
      if (held.length === 2) resolve()
      if (held.length > 2) response.end()
    })
    await using target = httpTarget({ connections: 2 })

    const outcomes = Array.from({ length: 6 }, () => dispatchTo(target, { url: server.origin }))
    await areHeld
    for (const response of held.slice()) response.end()

    expect(await Promise.all(outcomes)).toEqual(
      Array.from({ length: 6 }, () => ({ kind: 'succeeded', result: { status: 200 } })),
    )
    expect(server.connectionCount).toBe(2)
  })

  test('are closed with the target, and their attempts end', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer(resolve)
    await using target = httpTarget()

    const outcome = dispatchTo(target, { url: server.origin })
    const isClosed = once(await arrived, 'close')
    await target.close?.()

    expect(await outcome).toMatchObject(NETWORK)
    await isClosed
  })
})

describe('an answer with a very large body', () => {
  test.each([200, 500])('is cut after 64 kB, and its connection is closed: %i', async (status) => {
    const { promise: closed, resolve: onClose } = Promise.withResolvers<number>()
    await using server = await startHttpServer((response) => {
      let written = 0
      const chunk = Buffer.alloc(16_384, 'x')
      const write = (): void => {
        do written += chunk.length
        while (!response.destroyed && response.write(chunk))
      }
      response.writeHead(status).on('drain', write)
      response.on('close', () => onClose(written))
      write()
    })
    await using target = httpTarget()

    const outcome = await dispatchTo(target, { url: server.origin })

    const answer = { status, body: 'x'.repeat(4096), truncated: true }
    if (status === 200) expect(outcome).toEqual({ kind: 'succeeded', result: answer })
    else expect(outcome).toMatchObject({ kind: 'failed', error: { detail: answer }, retryable: true })
    // The server has also written what is in the buffers of both sockets.
    expect(await closed).toBeLessThan(20_000_000)
  })

  test('is read to its end up to that size, so that its connection can be reused', async () => {
    await using server = await startHttpServer((response) => response.end('x'.repeat(65_536)))
    await using target = httpTarget({ connections: 1 })

    await dispatchTo(target, { url: server.origin })
    expect(await dispatchTo(target, { url: server.origin })).toMatchObject({ result: { truncated: true } })

    expect(server.connectionCount).toBe(1)
  })

  test('is cut at the size that the installation sets', async () => {
    await using server = await startHttpServer((response) => response.end('x'.repeat(100)))
    await using target = httpTarget({ maxBodyBytes: 10 })

    expect(await dispatchTo(target, { url: server.origin })).toEqual({
      kind: 'succeeded',
      result: { status: 200, body: 'x'.repeat(10), truncated: true },
    })
  })
})

describe('cancelling an attempt', () => {
  test.each<[string, (response: ServerResponse) => void]>([
    ['before the headers', () => undefined],
    ['in the middle of the body', (response) => response.writeHead(200, { 'Content-Length': '10' }).write('half')],
  ])('a cancellation %s ends the attempt and closes its socket', async (_when, hang) => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer((response) => {
      hang(response)
      resolve(response)
    })
    await using target = httpTarget()
    const controller = new AbortController()

    const outcome = target.dispatch(attemptAt({ url: server.origin, payload: {} }), controller.signal)
    const isClosed = once(await arrived, 'close')
    controller.abort(new Error('timeout'))

    expect(await outcome).toEqual({ kind: 'cancelled' })
    await isClosed
    expect(server.requests).toHaveLength(1)
  })

  test('a cancellation before the dispatch sends nothing', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget()

    expect(await target.dispatch(attemptAt({ url: server.origin }), AbortSignal.abort())).toEqual({ kind: 'cancelled' })
    expect(server.connectionCount).toBe(0)
  })

  test('a cancellation while the attempt waits for a connection ends it at once, and its request is never sent', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>()
    await using server = await startHttpServer((response, _request, count) => {
      if (count === 1) resolve(response)
      else response.end()
    })
    await using target = httpTarget({ connections: 1 })
    const controller = new AbortController()

    const first = dispatchTo(target, { url: `${server.origin}/first` })
    const holding = await arrived
    const second = target.dispatch(attemptAt({ url: `${server.origin}/second` }), controller.signal)
    controller.abort()
    expect(await second).toEqual({ kind: 'cancelled' })
    holding.end()
    expect(await first).toMatchObject({ kind: 'succeeded' })
    expect(await dispatchTo(target, { url: `${server.origin}/third` })).toMatchObject({ kind: 'succeeded' })

    expect(server.requests.map(({ path }) => path)).toEqual(['/first', '/third'])
    expect(server.connectionCount).toBe(1)
  })

  test('a cancellation after the answer changes nothing', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using target = httpTarget({ connections: 1 })
    const controller = new AbortController()

    const outcome = await target.dispatch(attemptAt({ url: server.origin }), controller.signal)
    controller.abort()

    expect(outcome).toMatchObject({ kind: 'succeeded' })
    expect(await dispatchTo(target, { url: server.origin })).toMatchObject({ kind: 'succeeded' })
    expect(server.connectionCount).toBe(1)
  })
})
