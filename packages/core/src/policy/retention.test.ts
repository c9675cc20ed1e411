import { expect, test } from 'vitest'

import { checkRetention, retentionMargin } from './retention.ts'

const HTTP = { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 }

test('E-52: the HTTP target keeps its keys four times as long as its retries take', () => {
  expect(retentionMargin({ retry: HTTP, idempotencyRetentionSeconds: 86_400 })).toBe(4)
})

test.each([
  [86_400, true],
  [21_600, true],
  [21_599, false],
  [0, false],
])('E-51: ten attempts with a cap of 2160 s against a retention of %i s: fits is %s', (seconds, fits) => {
  expect(checkRetention({ retry: HTTP, idempotencyRetentionSeconds: seconds }) === null).toBe(fits)
})

test('E-51: the problem names the field, the numbers and the way out', () => {
  const retry = { ...HTTP, capSeconds: 9000 }

  expect(checkRetention({ retry, idempotencyRetentionSeconds: 86_400 })).toEqual({
    path: 'policy.retry',
    message:
      'expected maxAttempts × capSeconds to be at most 86400 s, for which the target remembers an idempotency key, ' +
      'got 10 × 9000 s = 90000 s: lower capSeconds or maxAttempts',
  })
})
