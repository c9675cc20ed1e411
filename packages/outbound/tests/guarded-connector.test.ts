import { connect, type LookupFunction, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'

import type { buildConnector } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'

import { AddressNotAllowedError, guardedConnector, type ConnectionGuard } from '../src/guard/connector.ts'
import { parseAllowedHosts } from '../src/guard/hosts.ts'
import type { Resolve } from '../src/index.ts'
import { startHttpsServer, startNetServer } from './local-server.ts'
import { openClient, sendTo } from './requests.ts'
import { selfSigned } from './self-signed.ts'

const PUBLIC = '93.184.215.14'

function resolvingTo(...addresses: readonly string[]): Resolve {
  return async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

/** The result of a connection to `protocol//hostname:port`: a socket or an error. */
function connectBy(
  guard: Partial<ConnectionGuard> & { readonly allowed: readonly string[] },
  options: buildConnector.Options,
): Promise<Socket | Error> {
  const { allowsAddress } = parseAllowedHosts(guard.allowed)
  const connector = guardedConnector({ allowsAddress, resolve: resolvingTo(PUBLIC), ...guard })
  const { promise, resolve } = Promise.withResolvers<Socket | Error>()
  connector(options, (error, socket) => resolve(error ?? socket))
  return promise
}

describe('the address that a connection reaches', () => {
  /** A network that connects every address to one port of loopback, as a transparent proxy does. */
  function leadingTo(port: number): (lookup: LookupFunction) => buildConnector.connector {
    return (lookup) => (options, callback) => {
      lookup(options.hostname, { all: true }, (error) => {
        if (error !== null) return callback(error, null)
        const socket = connect(port, '127.0.0.1', () => callback(null, socket))
        socket.on('error', () => undefined)
      })
    }
  }

  test.each([
    ['http:', 'name.example'],
    ['https:', 'name.example'],
    ['http:', PUBLIC],
    ['https:', PUBLIC],
  ])('is checked before a byte is written: %s//%s', async (protocol, hostname) => {
    const { promise: ended, resolve: end } = Promise.withResolvers<number>()
    await using elsewhere = await startNetServer((socket) => {
      socket.on('data', () => undefined)
      socket.on('close', () => end(socket.bytesRead))
    })

    const result = await connectBy(
      { allowed: ['*'], dial: leadingTo(elsewhere.port) },
      { hostname, host: hostname, protocol, port: '' },
    )

    expect(result).toBeInstanceOf(AddressNotAllowedError)
    expect(await ended).toBe(0)
    expect(elsewhere.connectionCount).toBe(1)
  })

  test('leaves a connection that the other side has already closed as a network error, not as a refused address', async () => {
    await using elsewhere = await startNetServer(() => undefined)
    const dial = (): buildConnector.connector => (_options, callback) => {
      const socket = connect(elsewhere.port, '127.0.0.1', () => {
        socket.destroy()
        callback(null, socket)
      })
    }

    const result = await connectBy({ allowed: ['*'], dial }, { hostname: PUBLIC, protocol: 'http:', port: '80' })

    expect(result).not.toBeInstanceOf(AddressNotAllowedError)
    expect(result).toMatchObject({ code: 'ECONNRESET' })
  })
})

describe('a connection', () => {
  /** No network: records the addresses that a socket would connect to. */
  function recording(given: unknown[], all: boolean): (lookup: LookupFunction) => buildConnector.connector {
    return (lookup) => (options, callback) => {
      lookup(options.hostname, { all }, (error, address, family) => {
        if (error === null) given.push(family === undefined ? address : { address, family })
        callback(error ?? new Error('no network'), null)
      })
    }
  }

  test("goes to the addresses that were checked, even if the resolver's list changes afterwards", async () => {
    const addresses = [
      { address: PUBLIC, family: 4 },
      { address: '2606:2800:21f:cb07:6820:80da:af6b:8b2c', family: 6 },
    ]
    const given: unknown[] = []
    const options = { hostname: 'name.example', protocol: 'http:', port: '80' }

    await connectBy({ allowed: ['*'], resolve: async () => addresses, dial: recording(given, true) }, options)
    await connectBy({ allowed: ['*'], resolve: async () => addresses, dial: recording(given, false) }, options)
    for (const entry of addresses) entry.address = '127.0.0.1'

    expect(given).toEqual([
      [
        { address: PUBLIC, family: 4 },
        { address: '2606:2800:21f:cb07:6820:80da:af6b:8b2c', family: 6 },
      ],
      { address: PUBLIC, family: 4 },
    ])
  })

  test.each([
    ['its address is special', 'http:', '127.0.0.1', ['*']],
    ['its address is special, in IPv6', 'http:', '::1', ['*']],
    ['its address is IPv4 inside IPv6', 'http:', '::ffff:127.0.0.1', ['*']],
    ['its address is listed for another port', 'https:', '127.0.0.1', ['*', '127.0.0.1:80']],
  ])('is not attempted if %s', async (_why, protocol, hostname, allowed) => {
    const given: unknown[] = []

    const result = await connectBy({ allowed, dial: recording(given, true) }, { hostname, protocol, port: '' })

    expect(result).toBeInstanceOf(AddressNotAllowedError)
    expect(given).toEqual([])
  })

  test('fails if its resolver throws', async () => {
    const resolve = (): never => {
      throw new Error('broken')
    }

    const result = await connectBy(
      { allowed: ['*'], resolve },
      { hostname: 'name.example', protocol: 'http:', port: '' },
    )

    expect(result).toMatchObject({ message: 'broken' })
  })
})

describe('a TLS connection', () => {
  const known = getCACertificates('default')
  afterEach(() => setDefaultCACertificates(known))

  test('uses the host name in the URL, whatever the address', async () => {
    const certificate = selfSigned('digest.internal')
    setDefaultCACertificates([...known, certificate.cert])
    const names: string[] = []
    const SNICallback = (name: string, done: (error: null) => void): void => {
      names.push(name)
      done(null)
    }
    await using server = await startHttpsServer({ ...certificate, SNICallback }, (response) => response.end('fine'))
    await using client = openClient({
      allowedHosts: ['digest.internal', '127.0.0.1'],
      resolve: resolvingTo('127.0.0.1'),
      connections: 1,
    })

    for (let call = 1; call <= 2; call++) {
      const end = await sendTo(client, `https://digest.internal:${server.port}/`, { body: '{}' })
      expect(end).toMatchObject({ kind: 'answered', answer: { status: 200, body: Buffer.from('fine') } })
    }

    expect(names).toEqual(['digest.internal'])
    expect(server.connectionCount).toBe(1)
  })

  test('fails if the certificate is for another host', async () => {
    const certificate = selfSigned('other.internal')
    setDefaultCACertificates([...known, certificate.cert])
    await using server = await startHttpsServer(certificate, (response) => response.end('fine'))
    await using client = openClient({
      allowedHosts: ['digest.internal', '127.0.0.1'],
      resolve: resolvingTo('127.0.0.1'),
    })

    expect(await sendTo(client, `https://digest.internal:${server.port}/`)).toMatchObject({
      kind: 'broken',
      error: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    })
    expect(server.requests).toHaveLength(0)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['resets', (socket) => socket.resetAndDestroy()],
    ['closes', (socket) => socket.end()],
    ['does not speak TLS', (socket) => socket.end('220 mail ready\r\n')],
  ])('fails at once if the other side %s', async (_what, react) => {
    await using server = await startNetServer((socket) => socket.once('data', () => react(socket)))
    await using client = openClient()

    expect(await sendTo(client, `https://127.0.0.1:${server.port}/`)).toMatchObject({ kind: 'broken' })
  })

  test('in progress does not delay closing the client', async () => {
    const { promise: begun, resolve } = Promise.withResolvers<void>()
    await using server = await startNetServer((socket) => socket.once('data', () => resolve()))
    await using client = openClient()

    const end = sendTo(client, `https://127.0.0.1:${server.port}/`)
    await begun
    await client.close()

    expect(await end).toMatchObject({ kind: 'broken' })
  })
})
