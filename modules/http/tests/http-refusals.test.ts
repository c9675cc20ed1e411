import type { Outcome } from '@carillon/core'
import { GuardedClient, type Resolve } from '@carillon/outbound'
import { startCanary, startHttpServer, type LocalServer } from '@carillon/outbound/testing'
import { HOSTILE_NAMES, ODD_HOSTS, ODD_URLS, SPECIAL_ADDRESSES } from '@carillon/outbound/testing/ssrf-corpus'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { HttpSpec } from '../src/index.ts'
import { createHttpTargetOn } from '../src/target.ts'
import { attemptAt, dispatchTo, draftOf, httpTarget, NO_LIMITS } from './attempt.ts'

const resolveHostile: Resolve = async (hostname) => {
  const [, addresses = []] = Object.entries(HOSTILE_NAMES).find(([name]) => name.toLowerCase() === hostname) ?? []
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

/** True if a schedule with this URL can be created. */
function isAccepted(url: string): boolean {
  return (
    target.schema.safeParse({ kind: 'http', url }).success && target.check?.(draftOf({ url }), NO_LIMITS)?.length === 0
  )
}

describe('a schedule', () => {
  const hosts = [...SPECIAL_ADDRESSES, ...ODD_HOSTS].map((host) => `http://${host}:PORT/`)

  test.each([...hosts, ...ODD_URLS])('cannot be created for %j, and a stored one fails for good', async (text) => {
    const url = text.replace('PORT', String(canary.port))

    expect(isAccepted(url)).toBe(false)
    const outcome = await dispatchUnchecked(url)
    expect(outcome.kind).toMatch(/^(?:failed|malformed)$/)
    expect(canary.connectionCount).toBe(0)
  })

  test.each(Object.keys(HOSTILE_NAMES))('fails for good if the addresses are those of %s', async (name) => {
    const url = `http://${name}:${canary.port}/`

    expect(isAccepted(url)).toBe(true)
    expect(await dispatchTo(target, { url })).toEqual({
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
  })
})

describe('a host that may not be called', () => {
  test('is a problem of the URL when the schedule is created', () => {
    expect(httpTarget().check?.(draftOf({ url: 'https://a.example/' }), NO_LIMITS)).toEqual([
      {
        path: 'url',
        message: 'expected a host that this installation may call (CARILLON_ALLOWED_TARGETS), got a.example',
      },
    ])
    expect(target.check?.(draftOf({ url: 'https://a.example/' }), { allowedHosts: ['b.example'] })).toEqual([
      {
        path: 'url',
        message: "expected a host that this tenant may call (allowedHosts of the tenant's limits), got a.example",
      },
    ])
  })

  test.each([
    ['removed from the list of the installation', 'digest.internal', null, 'a host that this installation may call'],
    ['missing from the list of the tenant', '127.0.0.1', ['b.example'], 'a host that this tenant may call'],
  ])('and was %s fails the attempt for good, and nothing is sent', async (_what, listed, allowedHosts, expected) => {
    await using server = await startHttpServer((response) => response.end())
    await using narrow = httpTarget({ allowedHosts: [listed] })

    const outcome = await dispatchTo(narrow, { url: server.origin }, { limits: { allowedHosts } })

    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'host_not_allowed' }, retryable: false })
    expect(outcome).toMatchObject({
      error: {
        message: expect.stringMatching(
          new RegExp(`^expected ${expected} .+, got 127\\.0\\.0\\.1:${server.port}; nothing was sent$`),
        ) as string,
      },
    })
    expect(server.connectionCount).toBe(0)
  })

  test('reads no secret', async () => {
    const asked: string[] = []
    const secrets = {
      resolve: async ({ name }: { name: string }) => {
        asked.push(name)
        return 'a-token-of-some-length'
      },
    }
    await using narrow = httpTarget({ allowedHosts: ['*'], secrets })
    const auth = { kind: 'bearer', secretRef: 'token' }

    const limits = { allowedHosts: ['b.example'] }
    const byHost = await dispatchTo(narrow, { url: 'https://a.example/', auth }, { limits })
    const byAddress = await dispatchTo(narrow, { url: 'http://127.0.0.1/', auth })

    expect(byHost).toMatchObject({ error: { code: 'host_not_allowed' }, retryable: false })
    expect(byAddress).toMatchObject({ error: { code: 'address_not_allowed' }, retryable: false })
    expect(asked).toEqual([])
  })
})

test('a target that was given its client leaves it open', async () => {
  await using server = await startHttpServer((response) => response.end())
  await using client = new GuardedClient({ allowedHosts: ['127.0.0.1'] })
  const shared = createHttpTargetOn(client, {})

  await shared.close?.()

  expect(await dispatchTo(shared, { url: server.origin })).toMatchObject({ kind: 'succeeded' })
})
