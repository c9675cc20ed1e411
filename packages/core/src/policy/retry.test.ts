import type { RetryPolicy } from '@carillon/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Outcome } from '../ports/target.ts'
import { checkKeyRetention, decideRetry } from './retry.ts'
import { stableFraction } from './stable-fraction.ts'

const HTTP: RetryPolicy = { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 }
const RUN = '0198c0de-0000-7000-8000-000000000001'

/** A failed outcome of the type that targets return, so that a change of the port fails to compile here. */
function failed(fields: { retryable?: boolean; retryAfterMs?: number } = {}): Extract<Outcome, { kind: 'failed' }> {
  return { kind: 'failed', error: { code: 'http_status', message: 'got 503' }, retryable: true, ...fields }
}

function delayOf(attempt: number, fields: { retryAfterMs?: number } = {}, policy = HTTP, jitterSeed = RUN): number {
  const decision = decideRetry({ policy, attempt, outcome: failed(fields), jitterSeed })
  if (decision.kind === 'final') throw new Error(`expected a retry after attempt ${attempt}, got none`)
  return decision.delayMs
}

/** A backoff minus its jitter, in whole milliseconds. */
function withJitter(backoffMs: number, attempt: number, seed = RUN): number {
  return Math.ceil(backoffMs * (1 - 0.1 * stableFraction(`${seed}:${attempt}`)))
}

describe('whether to try again', () => {
  test('a failure that is not retryable is final', () => {
    expect(decideRetry({ policy: HTTP, attempt: 1, outcome: failed({ retryable: false }), jitterSeed: RUN })).toEqual({
      kind: 'final',
    })
  })

  test.each([
    [8, 'retry'],
    [9, 'retry'],
    [10, 'final'],
    [11, 'final'],
  ])('with ten attempts, a failure of attempt %i is %s', (attempt, kind) => {
    expect(decideRetry({ policy: HTTP, attempt, outcome: failed(), jitterSeed: RUN }).kind).toBe(kind)
  })

  test('a policy of one attempt never tries again', () => {
    const policy = { ...HTTP, maxAttempts: 1 }

    expect(decideRetry({ policy, attempt: 1, outcome: failed(), jitterSeed: RUN })).toEqual({ kind: 'final' })
  })
})

describe('how long to wait', () => {
  test.each([
    [1, 30],
    [2, 60],
    [3, 120],
    [6, 960],
    [7, 1920],
    [8, 2160],
    [9, 2160],
  ])('after attempt %i the backoff is %i s, less its jitter', (attempt, seconds) => {
    expect(delayOf(attempt)).toBe(withJitter(seconds * 1000, attempt))
  })

  test('the delay of a run is the same on every worker', () => {
    expect([delayOf(1), delayOf(2), delayOf(9)]).toEqual([29_345, 54_681, 2_051_924])
  })

  test('runs that failed at the same time are not retried at the same time', () => {
    const delays = Array.from({ length: 1000 }, (_, n) => delayOf(8, {}, HTTP, `run-${n}`))

    expect(new Set(delays).size).toBeGreaterThan(990)
    expect(Math.max(...delays) - Math.min(...delays)).toBeGreaterThan(0.099 * 2_160_000)
  })

  test.each([
    ['shorter than the backoff', 1000, withJitter(30_000, 1)],
    ['longer than the backoff', 45_000, 45_000],
    ['with a fraction of a millisecond', 45_000.25, 45_001],
    ['of the cap', 2_160_000, 2_160_000],
    ['beyond the cap', 2_160_001, 2_160_000],
    ['without end', Infinity, 2_160_000],
    ['in the past', -5000, withJitter(30_000, 1)],
    ['that could not be read', Number.NaN, withJitter(30_000, 1)],
  ])('a Retry-After %s', (_, retryAfterMs, delayMs) => {
    expect(delayOf(1, { retryAfterMs })).toBe(delayMs)
  })

  test('the delay is a whole number, at least 90 % of the backoff, at least Retry-After, and never above the cap', () => {
    const attempts = fc.record({
      maxAttempts: fc.integer({ min: 2, max: 100 }),
      baseSeconds: fc.integer({ min: 1, max: 86_400 }),
      capSeconds: fc.integer({ min: 1, max: 86_400 }),
      seed: fc.uuid(),
      attempt: fc.integer({ min: 1, max: 99 }),
      retryAfterMs: fc.option(fc.double({ min: -1e6, max: 1e9 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(attempts, ({ seed, attempt, retryAfterMs, ...policy }) => {
        const outcome = failed(retryAfterMs === undefined ? {} : { retryAfterMs })
        const decision = decideRetry({ policy, attempt, outcome, jitterSeed: seed })

        expect(decision.kind).toBe(attempt < policy.maxAttempts ? 'retry' : 'final')
        if (decision.kind === 'final') return
        const capMs = policy.capSeconds * 1000
        const backoffMs = Math.min(policy.baseSeconds * 1000 * 2 ** (attempt - 1), capMs)
        const asked = Number.isNaN(retryAfterMs) ? 0 : (retryAfterMs ?? 0)
        expect(Number.isInteger(decision.delayMs)).toBe(true)
        expect(decision.delayMs).toBeLessThanOrEqual(capMs)
        expect(decision.delayMs).toBeGreaterThanOrEqual(0.9 * backoffMs)
        expect(decision.delayMs).toBeGreaterThanOrEqual(Math.min(asked, capMs))
        if (asked <= 0) expect(decision.delayMs).toBeLessThanOrEqual(backoffMs)
      }),
      { numRuns: 1000 },
    )
  })

  test('ten attempts of the HTTP target end within six hours', () => {
    const waits = Array.from({ length: 9 }, (_, index) => delayOf(index + 1, { retryAfterMs: Infinity }))

    expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeLessThanOrEqual(6 * 3_600_000)
  })
})

test.each([
  [86_400, true],
  [21_600, true],
  [21_599, false],
  [0, false],
])('ten attempts with a cap of 2160 s against a retention of %i s: fits is %s', (seconds, fits) => {
  expect(checkKeyRetention({ retry: HTTP, idempotencyRetentionSeconds: seconds }) === null).toBe(fits)
})

test('the problem names the field, the numbers and what to change', () => {
  const retry = { ...HTTP, capSeconds: 9000 }

  expect(checkKeyRetention({ retry, idempotencyRetentionSeconds: 86_400 })).toEqual({
    path: 'policy.retry',
    message:
      'expected maxAttempts × capSeconds to be at most 86400 s, for which the target remembers an idempotency key, ' +
      'got 10 × 9000 s = 90000 s: lower capSeconds or maxAttempts',
  })
})
