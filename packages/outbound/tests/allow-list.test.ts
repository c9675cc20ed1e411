import { describe, expect, test } from 'vitest'

import { GuardedClient, parseAllowedHosts, parseTenantHosts } from '../src/index.ts'
import { startHttpServer } from './local-server.ts'
import { openClient, sendTo } from './requests.ts'

const HOST_REFUSED = { kind: 'refused', refusal: { code: 'host_not_allowed' } }

function isAllowed(allowedHosts: string | readonly string[], url: string, tenantHosts?: readonly string[]): boolean {
  const client = new GuardedClient({ allowedHosts: [allowedHosts].flat() })
  return client.refusalOf(url, tenantHosts ?? null) === undefined
}

describe('the allow list and hosts', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:9000/'],
    ['127.1', 'http://127.0.0.1/'],
    ['localhost', 'http://LOCALHOST:3000/'],
    ['Digest.Internal', 'https://digest.internal/'],
    ['digest.internal', 'https://digest.internal./'],
    ['digest.internal.', 'https://digest.internal/'],
    ['digest.internal:8443', 'https://digest.internal:8443/'],
    ['digest.internal:443', 'https://digest.internal/'],
    ['digest.internal:80', 'http://digest.internal/'],
    ['*.example.com', 'https://a.example.com/'],
    ['*.example.com', 'https://a.b.example.com./'],
    ['*.example.com:8443', 'https://a.example.com:8443/'],
    ['bücher.example', 'https://xn--bcher-kva.example/'],
    ['*.bücher.example', 'https://a.bücher.example/'],
    ['[::1]', 'http://[::1]:80/'],
    ['[0:0:0:0:0:0:0:1]', 'http://[::1]/'],
    ['[::1]:8080', 'http://[::1]:8080/'],
    ['*', 'https://anything/'],
    ['*', 'http://93.184.215.14/'],
    ['*', 'http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/'],
    ['*:8443', 'https://anything:8443/'],
  ])('the list %s allows %s', (pattern, url) => {
    expect(isAllowed(pattern, url)).toBe(true)
  })

  test.each([
    ['127.0.0.1', 'http://127.0.0.2/'],
    ['127.0.0.1', 'http://localhost/'],
    ['127.0.0.1', 'http://[::1]/'],
    ['127.0.0.1', 'http://127.0.0.1.nip.io/'],
    ['127.0.0.1', 'http://0.0.0.0/'],
    ['localhost', 'http://127.0.0.1/'],
    ['localhost', 'http://localhost.evil.com/'],
    ['localhost', 'http://a.localhost/'],
    ['digest.internal', 'https://xdigest.internal/'],
    ['digest.internal', 'https://a.digest.internal/'],
    ['digest.internal', 'https://digestxinternal/'],
    ['digest.internal:8443', 'https://digest.internal/'],
    ['digest.internal:443', 'http://digest.internal/'],
    ['*.example.com', 'https://example.com/'],
    ['*.example.com', 'https://evilexample.com/'],
    ['*.example.com', 'https://a.example.com.evil.com/'],
    ['*.example.com:8443', 'https://a.example.com/'],
    ['apple.com', 'https://аpple.com/'],
    ['*:8443', 'https://anything/'],
    ['*', 'http://169.254.169.254/latest'],
    ['*', 'http://[::1]/'],
    ['*:80', 'http://127.0.0.1/'],
  ])('the list %s does not allow %s', (pattern, url) => {
    expect(isAllowed(pattern, url)).toBe(false)
  })

  test('an empty list allows no host', () => {
    expect(isAllowed([], 'http://localhost/')).toBe(false)
  })

  test('the refusal of a host that is not allowed names the setting with the list', () => {
    expect(openClient().refusalOf('http://169.254.169.254:8080/latest/meta-data', null)).toEqual({
      code: 'host_not_allowed',
      message: 'expected a host that this installation may call (CARILLON_ALLOWED_TARGETS), got 169.254.169.254:8080',
    })
  })
})

describe('the patterns of an allow list', () => {
  test.each([
    '',
    ' ',
    '**',
    '*.',
    '*.*',
    'a.*.com',
    '*example.com',
    'http://example.com',
    'example.com/path',
    'user@example.com',
    'example.com:0',
    'example.com:65536',
    'example.com:',
    'example.com:x',
    '::1',
    '[::1',
    '[x]',
    '*.127.0.0.1',
    '*.[::1]',
    '*/8',
    'example.com/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8:80',
    '10/8',
    '010.0.0.0/8',
    '10.0.0.7/8',
    'fd00::1/8',
    'fd00::/129',
    '[fd00::]/8',
    '::ffff:10.0.0.0/104',
    '256.256.256.256',
    'exa mple.com',
    'a,b',
  ])('the invalid pattern %j makes the start fail', (pattern) => {
    expect(() => new GuardedClient({ allowedHosts: [pattern] })).toThrow(RangeError)
  })
})

describe('the allow list and special addresses', () => {
  test.each([
    [['*', '10.0.0.0/8'], 'http://10.1.2.3/'],
    [['*', '10.1.2.3/32'], 'http://10.1.2.3/'],
    [['*', '10.1.2.3'], 'http://10.1.2.3/'],
    [['*:80', '10.1.2.3:80'], 'http://10.1.2.3/'],
    [['*', '0.0.0.0/0'], 'http://127.0.0.1/'],
    [['*', 'fd00::/8'], 'http://[fd00:ec2::254]/'],
    [['*', '::1/128'], 'http://[::1]/'],
    [['[fd00::7]'], 'http://[fd00::7]/'],
  ])('the list %j allows %s', (allowedHosts, url) => {
    expect(isAllowed(allowedHosts, url)).toBe(true)
  })

  test.each([
    [['10.0.0.0/8'], 'http://10.1.2.3/'],
    [['example.com', '10.0.0.0/8'], 'http://10.1.2.3/'],
    [['*', '10.0.0.0/8'], 'http://192.168.0.1/'],
    [['*', '10.0.0.0/8'], 'http://[fd00::1]/'],
    [['*', '10.0.0.0/8'], 'http://[64:ff9b::a00:1]/'],
    [['*', '10.1.2.3:443'], 'http://10.1.2.3/'],
    [['*', '0.0.0.0/0'], 'http://[::1]/'],
    [['*', '::/0'], 'http://127.0.0.1/'],
  ])('the list %j does not allow %s', (allowedHosts, url) => {
    expect(isAllowed(allowedHosts, url)).toBe(false)
  })

  test('the refusal of an address that is not allowed names the setting with the list', () => {
    expect(openClient({ allowedHosts: ['*'] }).refusalOf('http://10.0.0.7:8080/', null)).toEqual({
      code: 'address_not_allowed',
      message:
        'expected a public address, or one that this installation lists (CARILLON_ALLOWED_TARGETS), got 10.0.0.7:8080',
    })
  })
})

describe('the allow list and resolved addresses', () => {
  test.each([
    [['*'], '93.184.215.14'],
    [['*'], '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
    [['*'], '::ffff:93.184.215.14'],
    // A network without IPv4 writes every IPv4 address like this.
    [['*'], '64:ff9b::5db8:d70e'],
    [[], '1.1.1.1'],
    [['10.0.0.0/8'], '10.0.0.1'],
    [['10.0.0.0/8'], '::ffff:10.0.0.1'],
    [['127.0.0.1'], '::ffff:7f00:1'],
    [['127.0.0.1:443'], '127.0.0.1'],
    [['[fd00::7]'], 'fd00:0:0:0:0:0:0:7'],
  ])('the list %j allows the resolved address %s on port 443', (texts, address) => {
    expect(parseAllowedHosts(texts).allowsAddress(address, 443)).toBe(true)
  })

  test.each([
    [['*'], '10.0.0.1'],
    [['localhost'], '127.0.0.1'],
    [['*', '127.0.0.1:80'], '127.0.0.1'],
    [['*', '10.0.0.0/8'], '64:ff9b::a00:1'],
    [['*'], 'example.com'],
    [['*', '127.0.0.1'], '127.1'],
    [['*', '127.0.0.1'], ''],
  ])('the list %j does not allow the resolved address %j on port 443', (texts, address) => {
    expect(parseAllowedHosts(texts).allowsAddress(address, 443)).toBe(false)
  })

  test('the list of a new installation allows loopback by name and by address', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient({ allowedHosts: ['127.0.0.1', 'localhost', '[::1]'] })

    expect(await sendTo(client, `http://localhost:${server.port}/`)).toMatchObject({ kind: 'answered' })
    expect(await sendTo(client, `http://127.0.0.1:${server.port}/`)).toMatchObject({ kind: 'answered' })
  })
})

describe('the allow list of a tenant', () => {
  test.each([
    [['a.example.com'], 'https://a.example.com/', true],
    [['*'], 'https://a.example.com/', true],
    [['*.example.com:443'], 'https://a.example.com/', true],
    [['b.example.com'], 'https://a.example.com/', false],
    [['a.example.com:8443'], 'https://a.example.com/', false],
    [[], 'https://a.example.com/', false],
    // The installation lists none of these.
    [['*'], 'https://evil.com/', false],
    [['evil.com'], 'https://evil.com/', false],
    [['127.0.0.1', '*'], 'http://127.0.0.1/', false],
  ])('narrows the list of the installation and never widens it: %j, %s', (tenantHosts, url, expected) => {
    expect(isAllowed('*.example.com', url, tenantHosts)).toBe(expected)
  })

  test('does not allow a special address', () => {
    expect(isAllowed('*', 'http://10.0.0.7/', ['10.0.0.7'])).toBe(false)
  })

  test('is named in the refusal of a host that it does not contain', () => {
    expect(openClient({ allowedHosts: ['*'] }).refusalOf('https://a.example/', ['b.example'])).toEqual({
      code: 'host_not_allowed',
      message: "expected a host that this tenant may call (allowedHosts of the tenant's limits), got a.example",
    })
  })

  test('applies to each call, even on a connection that another tenant opened', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient({ connections: 1 })

    expect(await sendTo(client, server.origin)).toMatchObject({ kind: 'answered' })
    const end = await sendTo(client, server.origin, { allowedHosts: ['b.example'] })

    expect(end).toEqual({
      kind: 'refused',
      refusal: {
        code: 'host_not_allowed',
        message: `expected a host that this tenant may call (allowedHosts of the tenant's limits), got 127.0.0.1:${server.port}`,
      },
    })
    expect(server.requests).toHaveLength(1)
  })

  test('allows nothing if it cannot be parsed', async () => {
    await using server = await startHttpServer((response) => response.end())
    await using client = openClient()

    expect(await sendTo(client, server.origin, { allowedHosts: ['127.0.0.1', 'a b'] })).toMatchObject(HOST_REFUSED)
    expect(server.connectionCount).toBe(0)
  })

  test.each(['10.0.0.0/8', 'a b', ''])('may contain host patterns only, not %j', (text) => {
    expect(() => parseTenantHosts(['a.example', text])).toThrow(RangeError)
    expect(() => parseTenantHosts(['a.example', text])).toThrow(`got ${JSON.stringify(text)}`)
  })
})

describe('the allow list at each call', () => {
  // Spellings of loopback. A guard that looks at names only lets nine of the first twelve through.
  test.each([
    '127.0.0.1',
    '127.1',
    '0177.0.0.1',
    '0x7f000001',
    '2130706433',
    '１２７.0.0.1',
    '0',
    '0.0.0.0',
    'localhost',
    'LOCALHOST.',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
  ])('a host that is not allowed is not connected to: %s', async (host) => {
    await using canary = await startHttpServer((response) => response.end('secret'))
    await using client = openClient({ allowedHosts: ['digest.internal'] })

    expect(await sendTo(client, `http://${host}:${canary.port}/`)).toMatchObject(HOST_REFUSED)
    expect(canary.connectionCount).toBe(0)
  })

  test('a port other than the allowed one is not connected to', async () => {
    await using canary = await startHttpServer((response) => response.end('secret'))
    await using allowed = await startHttpServer((response) => response.end('fine'))
    await using client = openClient({ allowedHosts: [`127.0.0.1:${allowed.port}`] })

    expect(await sendTo(client, canary.origin)).toMatchObject(HOST_REFUSED)
    expect(await sendTo(client, allowed.origin)).toMatchObject({ kind: 'answered' })
    expect(canary.connectionCount).toBe(0)
  })

  test('one client does not use what another client may call', async () => {
    await using canary = await startHttpServer((response) => response.end('secret'))
    await using open = openClient()
    await using narrow = openClient({ allowedHosts: ['digest.internal'] })

    expect(await sendTo(open, canary.origin)).toMatchObject({ kind: 'answered' })
    for (let call = 1; call <= 2; call++) expect(await sendTo(narrow, canary.origin)).toMatchObject(HOST_REFUSED)
    expect(canary.requests).toHaveLength(1)
  })

  test.each(['nonsense', '', '//127.0.0.1/', 'ftp://127.0.0.1/', 'ws://127.0.0.1/', 'file:///etc/passwd', 'data:,x'])(
    'a text that is no URL of HTTP is refused: %j',
    async (url) => {
      await using client = openClient({ allowedHosts: ['*', '127.0.0.1'] })

      const refusal = {
        code: 'host_not_allowed',
        message:
          'expected a host that this installation may call (CARILLON_ALLOWED_TARGETS), got a text that is no HTTP URL',
      }
      expect(client.refusalOf(url, null)).toEqual(refusal)
      expect(await sendTo(client, url)).toEqual({ kind: 'refused', refusal })
    },
  )
})
