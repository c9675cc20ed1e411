import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'

import * as restate from '@restatedev/restate-sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { dispatchTo, httpTarget, SLOT } from './attempt.ts'
import { FETCH_LIMIT_MS, startRestate, type RestateServer } from './restate-server.ts'

const MINUTE_MS = 60_000

interface Digest {
  readonly list: string
}

const invocations: Digest[] = []

const digest = restate.service({
  name: 'digest',
  handlers: {
    // Not inside `ctx.run`, because the test counts how often the handler is entered.
    send: async (_context: restate.Context, payload: Digest) => {
      invocations.push(payload)
      return { list: payload.list, count: invocations.length }
    },
  },
})

const services = createServer(restate.createEndpointHandler({ services: [digest], logger: () => undefined }))
let server: RestateServer

beforeAll(async () => {
  services.listen(0, '127.0.0.1')
  ;[server] = await Promise.all([startRestate(), once(services, 'listening')])
  await server.register(`http://127.0.0.1:${(services.address() as AddressInfo).port}`)
}, FETCH_LIMIT_MS)

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  services.close()
})

describe('a Restate service that the HTTP target calls', () => {
  // Restate remembers keys across tests, so each test has a schedule of its own.
  let scheduleId: string
  let count = 0

  beforeEach(() => {
    invocations.length = 0
    scheduleId = `01980000-0000-7000-8000-${String(++count).padStart(12, '0')}`
  })

  function spec(list: string): Record<string, unknown> {
    return { url: `${server.ingressUrl}/digest/send`, payload: { list } }
  }

  test('runs its handler once for two attempts at a slot, and gives both the same answer (I5)', async () => {
    await using target = httpTarget()

    const first = await dispatchTo(target, spec('a'), { scheduleId, attempt: 1 })
    const second = await dispatchTo(target, spec('a'), { scheduleId, attempt: 2 })

    expect(first).toEqual({ kind: 'succeeded', result: { status: 200, body: { list: 'a', count: 1 } } })
    expect(second).toEqual(first)
    expect(invocations).toEqual([{ list: 'a' }])
  })

  test('runs its handler for every slot', async () => {
    await using target = httpTarget()

    await dispatchTo(target, spec('a'), { scheduleId, scheduledFor: SLOT })
    const second = await dispatchTo(target, spec('a'), { scheduleId, scheduledFor: SLOT + MINUTE_MS })

    expect(second).toMatchObject({ result: { body: { count: 2 } } })
    expect(invocations).toHaveLength(2)
  })

  test('runs its handler once for 20 concurrent attempts at a slot', async () => {
    await using target = httpTarget()

    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => dispatchTo(target, spec('a'), { scheduleId, attempt: n + 1 })),
    )

    const answer = { kind: 'succeeded', result: { status: 200, body: { list: 'a', count: 1 } } }
    expect(outcomes).toEqual(Array.from({ length: 20 }, () => answer))
    expect(invocations).toHaveLength(1)
  })

  test('ignores a different body under the same key, so every attempt must send the same body (I5)', async () => {
    await using target = httpTarget()

    await dispatchTo(target, spec('a'), { scheduleId, attempt: 1 })
    const edited = await dispatchTo(target, spec('b'), { scheduleId, attempt: 2 })

    expect(edited).toMatchObject({ kind: 'succeeded', result: { body: { list: 'a' } } })
    expect(invocations).toEqual([{ list: 'a' }])
  })
})
