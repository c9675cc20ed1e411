import { describe, expect, test } from 'vitest'

import { ApiError, createClient, UnreachableError, type ClientOptions } from '../src/index.ts'

interface Asked {
  readonly url: string
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: unknown
}

/** A client whose requests get this answer, and a record of its requests. */
function asking(answer: () => Response | Promise<Response>, url = 'http://127.0.0.1:7400', key = 'key') {
  const asked: Asked[] = []
  const fetch: ClientOptions['fetch'] = async (input, { method = '', headers, body } = {}) => {
    const target = input instanceof Request ? input.url : String(input)
    asked.push({ url: target, method, headers: Object.fromEntries(new Headers(headers)), body })
    return answer()
  }
  return { client: createClient(url, key, { fetch }), asked }
}

const ok = (): Response => Response.json({})

describe('a request of the client', () => {
  test('goes to the route of its operation, with the key and its input', async () => {
    const { client, asked } = asking(ok)

    await client.schedules.list({ state: 'active', limit: 3 })
    await client.schedules.edit('a/b', { name: 'x' }, { revision: 2 })
    await client.schedules.planEdit('a', { name: 'x' })
    await client.schedules.create({} as never, { idempotencyKey: 'order 1' })

    expect(asked.map(({ method, url }) => `${method} ${url.replace('http://127.0.0.1:7400/api/v1', '')}`)).toEqual([
      'GET /schedules?state=active&limit=3',
      'PATCH /schedules/a%2Fb',
      'PATCH /schedules/a?dryRun=true',
      'POST /schedules',
    ])
    expect(asked[0]?.headers).toEqual({ authorization: 'Bearer key' })
    expect(asked[1]).toMatchObject({
      headers: { authorization: 'Bearer key', 'content-type': 'application/json', 'if-match': '"2"' },
      body: '{"name":"x"}',
    })
    expect(asked[2]?.headers).toMatchObject({ 'if-match': '*' })
    expect(asked[3]?.headers).toMatchObject({ 'idempotency-key': 'order 1' })
  })

  test.each(['http://host/carillon', 'http://host/carillon/', 'http://host/carillon//'])(
    'keeps the path of the base URL %s',
    async (url) => {
      const { client, asked } = asking(ok, url)

      await client.audit.get()

      expect(asked[0]?.url).toBe('http://host/carillon/api/v1/audit')
    },
  )

  test('returns undefined if the answer has no body', async () => {
    const { client } = asking(() => new Response(null, { status: 204 }))

    expect(await client.schedules.delete('x')).toBeUndefined()
  })

  test('is not sent with an invalid URL or key, and the error does not quote the key', async () => {
    const [badUrl, badKey] = [asking(ok, 'nowhere'), asking(ok, 'http://host', 'sécret\n')]

    await expect(badUrl.client.audit.get()).rejects.toThrow(
      'expected a URL such as http://127.0.0.1:7400, got "nowhere"',
    )
    await expect(badKey.client.audit.get()).rejects.toThrow(
      /^expected an API key of visible ASCII characters, got another$/,
    )
  })
})

describe('a failed request', () => {
  const problem = {
    type: 'urn:carillon:problem:rate_limited',
    code: 'rate_limited',
    title: 'Too many requests',
    status: 429,
    detail: 'wait',
    instance: '/requests/1',
    errors: [{ field: 'query.limit', message: 'expected less' }],
  }

  test('throws the problem with its code, its fields and the time to wait', async () => {
    const { client } = asking(() => Response.json(problem, { status: 429, headers: { 'retry-after': '7' } }))

    const error = await client.audit.get().catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      message: 'wait',
      status: 429,
      code: 'rate_limited',
      errors: problem.errors,
      retryAfterSeconds: 7,
    })
  })

  test.each<[string, () => Response | Promise<Response>, RegExp]>([
    ['text', () => new Response('nginx', { status: 502 }), /got another one \(status 502\)/],
    ['other JSON', () => Response.json({ message: 'no' }, { status: 404 }), /got another one \(status 404\)/],
    ['a success that is not JSON', () => new Response('<html>'), /got another one \(status 200\)/],
    [
      'no answer',
      () => Promise.reject(new TypeError('fetch failed')),
      /Carillon server at http:\/\/127\.0\.0\.1:7400, got none/,
    ],
  ])('with an answer that is not from Carillon (%s) throws an error that states so', async (_what, answer, message) => {
    const error = await asking(answer)
      .client.audit.get()
      .catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(UnreachableError)
    expect((error as Error).message).toMatch(message)
  })

  test("that the caller aborts throws the caller's reason", async () => {
    const abort = new AbortController()
    const client = createClient('http://127.0.0.1:7400', 'key', {
      signal: abort.signal,
      fetch: (_input, init) =>
        new Promise((_resolve, reject) =>
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)),
        ),
    })

    const asked = client.audit.get()
    abort.abort(new Error('enough'))

    await expect(asked).rejects.toThrow('enough')
  })
})

describe('the events of the client', () => {
  test('end with the connection, and throw if it breaks', async () => {
    const text = 'id: 1\nevent: reset\ndata: {"reason":"x"}\n\n'
    const broken = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text))
      },
      pull(controller) {
        controller.error(new TypeError('terminated'))
      },
    })
    const whole = asking(() => new Response(text))
    const cut = asking(() => new Response(broken))

    expect(await Array.fromAsync(whole.client.events({ lastEventId: '0' }))).toHaveLength(1)
    expect(whole.asked[0]?.headers).toMatchObject({ 'last-event-id': '0' })
    await expect(Array.fromAsync(cut.client.events())).rejects.toThrow(UnreachableError)
  })
})
