import type { Outcome } from '@carillon/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { HttpSpec, Resolve } from '../src/index.ts'
import { attemptAt, dispatchTo, httpTarget, NO_LIMITS } from './attempt.ts'
import { startCanary, startHttpServer, type LocalServer } from './local-server.ts'
import { HOSTILE_NAMES, ODD_HOSTS, ODD_URLS, SPECIAL_ADDRESSES } from './ssrf-corpus.ts'

const ADDRESS_REFUSED = { kind: 'failed', error: { code: 'address_not_allowed' }, retryable: false }

const resolveHostile: Resolve = async (hostname) => {
  const name = Object.keys(HOSTILE_NAMES).find((known) => known.toLowerCase() === hostname)
  const addresses = name === undefined ? undefined : HOSTILE_NAMES[name]
  if (addresses === undefined) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' })
  return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

// The most open list that an installation can have without special addresses.
const target = httpTarget({ allowedHosts: ['*'], resolve: resolveHostile })
let canary: LocalServer

beforeAll(async () => {
  canary = await startCanary()
})

afterAll(async () => {
  await target[Symbol.asyncDispose]()
  await canary[Symbol.asyncDispose]()
})

/** Dispatches a URL without parsing and checking its spec, as if it had been stored under weaker rules. */
function dispatchUnchecked(url: string): Promise<Outcome> {
  const attempt = attemptAt({ url: 'http://example.com/' })
  const spec: HttpSpec = { ...attempt.spec, url: URL.parse(url)?.href ?? url }
  return target.dispatch({ ...attempt, spec }, new AbortController().signal)
}

function isReadable(url: string): boolean {
  return target.schema.safeParse({ kind: 'http', url }).success
}

function problemsOf(url: string) {
  return target.check?.(attemptAt({ url }).spec, NO_LIMITS)
}

test('the canary counts connections, so that a count of 0 proves something', async () => {
  await using server = await startCanary()
  await using open = httpTarget({ allowedHosts: ['*', '127.0.0.0/8'], resolve: resolveHostile })

  const outcome = await dispatchTo(open, { url: `http://localhost:${server.port}/` })

  expect(outcome).toMatchObject({ error: { code: 'network' } })
  expect(server.connectionCount).toBe(1)
})

test('the corpus has at least 150 different spellings', () => {
  const spellings = [...SPECIAL_ADDRESSES, ...ODD_HOSTS, ...ODD_URLS, ...Object.keys(HOSTILE_NAMES)]

  expect(new Set(spellings).size).toBe(spellings.length)
  expect(spellings.length).toBeGreaterThanOrEqual(150)
})

describe('a list that allows every host', () => {
  test.each(SPECIAL_ADDRESSES)(
    'does not allow the special address %s, neither at save nor at dispatch',
    async (host) => {
      const url = `http://${host}:${canary.port}/`

      expect(problemsOf(url)).toEqual([
        { path: 'url', message: expect.stringContaining('expected a public address, or one that') as string },
      ])
      expect(await dispatchUnchecked(url)).toMatchObject(ADDRESS_REFUSED)
      expect(canary.connectionCount).toBe(0)
    },
  )

  test.each(ODD_HOSTS)('does not allow the spelling %s', async (host) => {
    const url = `http://${host}:${canary.port}/`

    expect(isReadable(url)).toBe(false)
    expect(await dispatchUnchecked(url)).toMatchObject({ kind: 'failed' })
    expect(canary.connectionCount).toBe(0)
  })

  test.each(ODD_URLS)('does not allow the URL %j', async (text) => {
    const url = text.replace('PORT', String(canary.port))

    expect(isReadable(url)).toBe(false)
    expect((await dispatchUnchecked(url)).kind).toMatch(/^(?:failed|malformed)$/)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(Object.keys(HOSTILE_NAMES))(
    'does not allow the addresses of the name %s, and the error does not show them',
    async (name) => {
      const url = `http://${name}:${canary.port}/`

      expect(problemsOf(url)).toEqual([])
      const outcome = await dispatchTo(target, { url })
      expect(outcome).toEqual({
        kind: 'failed',
        error: {
          code: 'address_not_allowed',
          message:
            `expected the host ${name.toLowerCase()}:${canary.port} to resolve to a public address, ` +
            'or one that this installation lists (CARILLON_ALLOWED_TARGETS), got another; nothing was sent',
        },
        retryable: false,
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

  test('never leads to a private address in 100 attempts', async () => {
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
    await using rebinding = httpTarget({ allowedHosts: ['*', '255.255.255.255'], resolve })

    const outcomes: Outcome[] = []
    for (let round = 0; round < 4; round++) {
      const attempts = Array.from({ length: 25 }, (_, n) =>
        dispatchTo(rebinding, { url: `http://try${n}.example:${canary.port}/` }),
      )
      outcomes.push(...(await Promise.all(attempts)))
    }

    expect(outcomes).toHaveLength(100)
    // There is one lookup per connection, so the address that was checked is the one that is called.
    expect(questions).toBe(100)
    expect(canary.connectionCount).toBe(0)
    const codes = outcomes.map((outcome) => (outcome.kind === 'failed' ? outcome.error.code : outcome.kind))
    expect(new Set(codes)).toEqual(new Set(['address_not_allowed', 'network']))
  })

  test.each([
    ['fails', failure, 'EAI_AGAIN'],
    ['gives no address', [], 'ENOTFOUND'],
  ])('is retried if the lookup %s', async (_what, answer, cause) => {
    const resolve: Resolve = async () => {
      if (answer instanceof Error) throw answer
      return answer
    }
    await using resolving = httpTarget({ allowedHosts: ['*'], resolve })

    expect(await dispatchTo(resolving, { url: 'http://nowhere.example/' })).toMatchObject({
      error: { code: 'network', detail: { cause } },
      retryable: true,
    })
  })

  test('is looked up once for a connection that is reused', async () => {
    await using server = await startHttpServer((response) => response.end())
    let questions = 0
    const resolve: Resolve = async () => {
      questions++
      return [questions === 1 ? PRIVATE : ALLOWED]
    }
    await using kept = httpTarget({ allowedHosts: ['name.example', '127.0.0.1'], connections: 1, resolve })

    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(await dispatchTo(kept, { url: `http://name.example:${server.port}/` })).toMatchObject({
        kind: 'succeeded',
      })
    }

    expect(questions).toBe(1)
    expect(server.requests.map(({ headers }) => headers.host)).toEqual(
      Array.from({ length: 3 }, () => `name.example:${server.port}`),
    )
  })
})
