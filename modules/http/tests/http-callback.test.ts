import { startHttpServer } from '@carillon/outbound/testing'
import { expect, test } from 'vitest'

import { dispatchTo, draftOf, httpTarget, NO_LIMITS } from './attempt.ts'

const CALLBACK = { completion: 'callback' } as const
const RETRY = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }

test('a request whose run ends by a callback says where and with which token, and any 2xx detaches the run', async () => {
  await using server = await startHttpServer((response) => response.writeHead(202).end('{"id":"job 7"}'))
  await using target = httpTarget()

  const outcome = await dispatchTo(target, { url: server.origin, ...CALLBACK, callbackTimeout: 'PT2H' })

  expect(outcome).toEqual({ kind: 'accepted', deadlineMs: 7_200_000 })
  expect(server.requests[0]?.headers).toMatchObject({
    'carillon-callback': expect.stringMatching(/\/api\/v1\/runs\/[^/]+\/complete\?attempt=1$/) as string,
    'carillon-callback-token': 'the-token-of-the-run',
  })
})

test('a request whose response ends the run carries no callback', async () => {
  await using server = await startHttpServer((response) => response.end())
  await using target = httpTarget()
  await dispatchTo(target, { url: server.origin, completion: 'response' })

  expect(Object.keys(server.requests[0]?.headers ?? {}).filter((name) => name.includes('callback'))).toEqual([])
})

test('a service that refuses the work is retried as without a callback, and the token does not get into the ledger', async () => {
  await using server = await startHttpServer((response, { headers }) =>
    response.writeHead(503).end(JSON.stringify({ token: headers['carillon-callback-token'] })),
  )
  await using target = httpTarget()

  const outcome = await dispatchTo(target, { url: server.origin, ...CALLBACK })

  expect(outcome).toMatchObject({ kind: 'failed', retryable: true, error: { code: 'http_status' } })
  expect(JSON.stringify(outcome)).not.toContain('the-token-of-the-run')
  expect(JSON.stringify(outcome)).toContain('(withheld)')
})

test.each([
  [{ callbackTimeout: 'PT1H' }, 'callbackTimeout'],
  [{ onDeadline: 'fail' }, 'onDeadline'],
  [{ ...CALLBACK, callbackTimeout: 'P31D' }, 'callbackTimeout'],
  [{ ...CALLBACK, callbackTimeout: '1h' }, 'callbackTimeout'],
  [{ ...CALLBACK, onDeadline: 'ask' }, 'onDeadline'],
  [{ completion: 'mail' }, 'completion'],
])('the spec %j is refused at %s', (fields, path) => {
  const result = httpTarget().schema.safeParse({ kind: 'http', url: 'http://127.0.0.1/', ...fields })

  expect(result.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path])
})

test('a callback that could be repeated after the service forgot the key is refused, unless the deadline ends the run', () => {
  const target = httpTarget({ idempotencyRetentionSeconds: 86_400 })
  const problemsOf = (input: Record<string, unknown>, retry = RETRY) => {
    const draft = draftOf({ url: 'http://127.0.0.1/', ...CALLBACK, ...input })
    return target.check?.({ ...draft, policy: { ...draft.policy, retry } }, NO_LIMITS)
  }

  expect(problemsOf({ callbackTimeout: 'PT23H' })).toEqual([])
  expect(problemsOf({ callbackTimeout: 'PT24H' })).toMatchObject([{ path: 'callbackTimeout' }])
  expect(problemsOf({ callbackTimeout: 'PT23H' }, { ...RETRY, maxAttempts: 2 })).toMatchObject([
    { path: 'callbackTimeout' },
  ])
  expect(problemsOf({ callbackTimeout: 'P30D', onDeadline: 'fail' })).toEqual([])
  expect(
    target.check?.(
      {
        ...draftOf({ url: 'http://127.0.0.1/', ...CALLBACK }),
        policy: { ...draftOf({ url: 'http://127.0.0.1/' }).policy, retry: target.policy.retry },
      },
      NO_LIMITS,
    ),
  ).toEqual([])
})

test('the deadline of a callback is retried by the policy unless the schedule says that it ends the run', () => {
  const target = httpTarget()
  const specOf = (input: object) => draftOf({ url: 'http://127.0.0.1/', ...CALLBACK, ...input }).spec

  expect(target.isRetriedAtDeadline?.(specOf({}))).toBe(true)
  expect(target.isRetriedAtDeadline?.(specOf({ onDeadline: 'fail' }))).toBe(false)
  expect(target.deadlineMs?.(specOf({}))).toBe(3_600_000)
})
