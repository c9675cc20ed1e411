import type { OutboundEnd } from '@carillon/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { readUrl, type Resolve } from '../src/index.ts'
import { startCanary, startHttpServer, type LocalServer } from './local-server.ts'
import { openClient, sendTo } from './requests.ts'
import { HOSTILE_NAMES, ODD_HOSTS, ODD_URLS, SPECIAL_ADDRESSES } from './ssrf-corpus.ts'

const ADDRESS_REFUSED = { kind: 'refused', refusal: { code: 'address_not_allowed' } }

const resolveHostile: Resolve = async (hostname) => {
  const name = Object.keys(HOSTILE_NAMES).find((known) => known.toLowerCase() === hostname)
  const addresses = name === undefined ? undefined : HOSTILE_NAMES[name]
  if (addresses === undefined) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' })
  return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

// The most open list that an installation can have without special addresses.
const client = openClient({ allowedHosts: ['*'], resolve: resolveHostile })
let canary: LocalServer

beforeAll(async () => {
  canary = await startCanary()
})

afterAll(async () => {
  await client.close()
  await canary[Symbol.asyncDispose]()
})

test('the canary counts connections, so that a count of 0 proves something', async () => {
  await using server = await startCanary()
  await using open = openClient({ allowedHosts: ['*', '127.0.0.0/8'], resolve: resolveHostile })

  expect(await sendTo(open, `http://localhost:${server.port}/`)).toMatchObject({ kind: 'broken' })
  expect(server.connectionCount).toBe(1)
})

test('the corpus has at least 150 different spellings', () => {
  const spellings = [...SPECIAL_ADDRESSES, ...ODD_HOSTS, ...ODD_URLS, ...Object.keys(HOSTILE_NAMES)]

  expect(new Set(spellings).size).toBe(spellings.length)
  expect(spellings.length).toBeGreaterThanOrEqual(150)
})

describe('a list that allows every host', () => {
  test.each(SPECIAL_ADDRESSES)(
    'does not allow the special address %s, neither before a call nor at the call',
    async (host) => {
      const url = `http://${host}:${canary.port}/`

      expect(client.refusalOf(url, null)).toEqual({
        code: 'address_not_allowed',
        message: expect.stringContaining('expected a public address, or one that') as string,
      })
      expect(await sendTo(client, url)).toMatchObject(ADDRESS_REFUSED)
      expect(canary.connectionCount).toBe(0)
    },
  )

  test.each(ODD_HOSTS)('does not allow the spelling %s', async (host) => {
    const url = `http://${host}:${canary.port}/`

    expect(readUrl(url).ok).toBe(false)
    expect((await sendTo(client, url)).kind).toMatch(/^(?:refused|broken)$/)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(ODD_URLS)('does not allow the URL %j', async (text) => {
    const url = text.replace('PORT', String(canary.port))

    expect(readUrl(url).ok).toBe(false)
    expect((await sendTo(client, url)).kind).toMatch(/^(?:refused|broken|malformed)$/)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(Object.keys(HOSTILE_NAMES))(
    'does not allow the addresses of the name %s, and the refusal does not show them',
    async (name) => {
      const url = `http://${name}:${canary.port}/`

      expect(client.refusalOf(url, null)).toBeUndefined()
      expect(await sendTo(client, url)).toEqual({
        kind: 'refused',
        refusal: {
          code: 'address_not_allowed',
          message:
            `expected the host ${name.toLowerCase()}:${canary.port} to resolve to a public address, ` +
            'or one that this installation lists (CARILLON_ALLOWED_TARGETS), got another',
        },
      })
      expect(canary.connectionCount).toBe(0)
    },
  )
})

describe('a host name with changing addresses', () => {
  const PRIVATE = { address: '127.0.0.1', family: 4 }
  const PRIVATE6 = { address: '::1', family: 6 }
  // The list contains this address, so that it stands for a public one. No connection to it is possible, so nothing leaves the machine.
  const ALLOWED = { address: '255.255.255.255', family: 4 }
  const failure = Object.assign(new Error('SERVFAIL'), { code: 'EAI_AGAIN' })

  // The answers to the first, second and later lookups of a name.
  const answers: readonly (readonly (Awaited<ReturnType<Resolve>> | Error)[])[] = [
    [[ALLOWED], [PRIVATE]],
    [[PRIVATE], [ALLOWED]],
    [[ALLOWED, PRIVATE]],
    [[PRIVATE6, ALLOWED]],
    [[ALLOWED], [ALLOWED, PRIVATE6]],
    [[], [PRIVATE]],
    [failure, [PRIVATE]],
    [failure, [ALLOWED], failure, [PRIVATE]],
  ]

  test('never leads to a private address in 100 calls', async () => {
    let questions = 0
    const asked = new Map<string, number>()
    const resolve: Resolve = async (hostname) => {
      const count = asked.get(hostname) ?? 0
      asked.set(hostname, count + 1)
      questions++
      const script = answers[Number(/\d+/.exec(hostname)?.[0]) % answers.length] ?? []
      const answer = script[count % script.length] ?? []
      if (answer instanceof Error) throw answer
      return answer
    }
    await using rebinding = openClient({ allowedHosts: ['*', '255.255.255.255'], resolve })

    const ends: OutboundEnd[] = []
    for (let round = 0; round < 4; round++) {
      const calls = Array.from({ length: 25 }, (_, n) => sendTo(rebinding, `http://try${n}.example:${canary.port}/`))
      ends.push(...(await Promise.all(calls)))
    }

    expect(ends).toHaveLength(100)
    // There is one lookup per connection, so the address that was checked is the one that is called.
    expect(questions).toBe(100)
    expect(canary.connectionCount).toBe(0)
    const codes = ends.map((end) => (end.kind === 'refused' ? end.refusal.code : end.kind))
    expect(new Set(codes)).toEqual(new Set(['address_not_allowed', 'broken']))
  })

  test.each([
    ['fails', failure, 'EAI_AGAIN'],
    ['gives no address', [], 'ENOTFOUND'],
  ])('is a broken connection, not a refusal, if the lookup %s', async (_what, answer, code) => {
    const resolve: Resolve = async () => {
      if (answer instanceof Error) throw answer
      return answer
    }
    await using resolving = openClient({ allowedHosts: ['*'], resolve })

    expect(await sendTo(resolving, 'http://nowhere.example/')).toMatchObject({ kind: 'broken', error: { code } })
  })

  test('is looked up once for a connection that is reused', async () => {
    await using server = await startHttpServer((response) => response.end())
    let questions = 0
    const resolve: Resolve = async () => {
      questions++
      return [questions === 1 ? PRIVATE : ALLOWED]
    }
    await using kept = openClient({ allowedHosts: ['name.example', '127.0.0.1'], connections: 1, resolve })

    for (let call = 1; call <= 3; call++) {
      expect(await sendTo(kept, `http://name.example:${server.port}/`)).toMatchObject({ kind: 'answered' })
    }

    expect(questions).toBe(1)
    expect(server.requests.map(({ headers }) => headers.host)).toEqual(
      Array.from({ length: 3 }, () => `name.example:${server.port}`),
    )
  })
})
