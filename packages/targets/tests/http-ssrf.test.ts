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

// As open as an installation can be without naming an address.
const target = httpTarget({ allowedHosts: ['*'], resolve: resolveHostile })
let canary: LocalServer

beforeAll(async () => {
  canary = await startCanary()
})

afterAll(async () => {
  await target[Symbol.asyncDispose]()
  await canary[Symbol.asyncDispose]()
})

/** Past schema and check, as a spec would be that was stored before they were so strict. */
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

test('the canary counts, or 0 would prove nothing', async () => {
  await using server = await startCanary()
  await using open = httpTarget({ allowedHosts: ['*', '127.0.0.0/8'], resolve: resolveHostile })

  const outcome = await dispatchTo(open, { url: `http://localhost:${server.port}/` })

  expect(outcome).toMatchObject({ error: { code: 'network' } })
  expect(server.connectionCount).toBe(1)
})

test('there are at least 150 spellings, each another', () => {
  const spellings = [...SPECIAL_ADDRESSES, ...ODD_HOSTS, ...ODD_URLS, ...Object.keys(HOSTILE_NAMES)]

  expect(new Set(spellings).size).toBe(spellings.length)
  expect(spellings.length).toBeGreaterThanOrEqual(150)
})

describe('with every host allowed, nothing is connected to', () => {
  test.each(SPECIAL_ADDRESSES)('that is the special address %s, at save and at dispatch alike', async (host) => {
    const url = `http://${host}:${canary.port}/`

    expect(problemsOf(url)).toEqual([
      { path: 'url', message: expect.stringContaining('expected a public address, or one that') as string },
    ])
    expect(await dispatchUnchecked(url)).toMatchObject(ADDRESS_REFUSED)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(ODD_HOSTS)('that is spelt oddly: %s', async (host) => {
    const url = `http://${host}:${canary.port}/`

    expect(isReadable(url)).toBe(false)
    expect(await dispatchUnchecked(url)).toMatchObject({ kind: 'failed' })
    expect(canary.connectionCount).toBe(0)
  })

  test.each(ODD_URLS)('that hides in an odd URL: %j', async (text) => {
    const url = text.replace('PORT', String(canary.port))

    expect(isReadable(url)).toBe(false)
    expect((await dispatchUnchecked(url)).kind).toMatch(/^(?:failed|malformed)$/)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(Object.keys(HOSTILE_NAMES))('that %s resolves to, and it is not told which that is', async (name) => {
    const url = `http://${name}:${canary.port}/`

    expect(problemsOf(url)).toEqual([])
    const outcome = await dispatchTo(target, { url })
    expect(outcome).toEqual({
      kind: 'failed',
      error: {
        code: 'address_not_allowed',
        message:
          `The host ${name.toLowerCase()}:${canary.port} leads to an address that this installation does not call; ` +
          'nothing was sent. Addresses that are not public must be listed (CARILLON_ALLOWED_TARGETS).',
      },
      retryable: false,
    })
    expect(canary.connectionCount).toBe(0)
  })
})

describe('a name that changes what it resolves to', () => {
  const PRIVATE = { address: '127.0.0.1', family: 4 }
  const PRIVATE6 = { address: '::1', family: 6 }
  // Listed, so that it stands for a public one; no connection to it can be made, so nothing leaves the machine.
  const ALLOWED = { address: '255.255.255.255', family: 4 }
  const failure = Object.assign(new Error('SERVFAIL'), { code: 'EAI_AGAIN' })

  // What each further question is answered.
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

  test('never leads to a private address, in 100 tries', async () => {
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
    // One question per connection: what was checked is what is called.
    expect(questions).toBe(100)
    expect(canary.connectionCount).toBe(0)
    const codes = outcomes.map((outcome) => (outcome.kind === 'failed' ? outcome.error.code : outcome.kind))
    expect(new Set(codes)).toEqual(new Set(['address_not_allowed', 'network']))
  })

  test.each([
    ['fails', failure, 'EAI_AGAIN'],
    ['gives no address', [], 'ENOTFOUND'],
  ])('may be tried again when resolving it %s', async (_what, answer, cause) => {
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

  test('is resolved once for a connection that is used again', async () => {
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
