import type { RetryPolicy } from '@carillon/api'

import type { Problem } from '../kernel/errors.ts'
import type { Outcome } from '../ports/target.ts'
import { stableFraction } from './stable-fraction.ts'

/** For a run whose policy can no longer be read. */
export const NO_RETRY: RetryPolicy = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }

interface FailedAttempt {
  readonly policy: RetryPolicy
  /** The number of the attempt that failed, counting from 1. */
  readonly attempt: number
  readonly outcome: Pick<Extract<Outcome, { readonly kind: 'failed' }>, 'retryable' | 'retryAfterMs'>
  /** The run's id. */
  readonly jitterSeed: string
}

export type RetryDecision = { readonly kind: 'retry'; readonly delayMs: number } | { readonly kind: 'final' }

/** The largest share of a backoff that the jitter takes off. */
const JITTER_SHARE = 0.1

/** Decides whether a failed attempt is followed by another, and after how long. */
export function decideRetry({ policy, attempt, outcome, jitterSeed }: FailedAttempt): RetryDecision {
  if (!outcome.retryable || attempt >= policy.maxAttempts) return { kind: 'final' }
  const capMs = policy.capSeconds * 1000
  const backoffMs = jittered(Math.min(policy.baseSeconds * 1000 * 2 ** (attempt - 1), capMs), jitterSeed, attempt)
  const askedMs = Math.ceil(outcome.retryAfterMs ?? 0)
  // Not Math.max, which returns NaN if a target passes on the NaN of an unreadable header.
  const waitMs = askedMs > backoffMs ? askedMs : backoffMs
  // The cap outweighs Retry-After: attempts × cap must fit into the target's idempotency retention (`checkKeyRetention`).
  return { kind: 'retry', delayMs: Math.min(waitMs, capMs) }
}

/** Runs that failed together must not be retried together. The jitter only shortens a backoff, so the cap holds. */
function jittered(backoffMs: number, seed: string, attempt: number): number {
  return Math.ceil(backoffMs * (1 - JITTER_SHARE * stableFraction(`${seed}:${attempt}`)))
}

interface Retention {
  readonly retry: RetryPolicy
  /** For how long the target remembers an idempotency key. */
  readonly idempotencyRetentionSeconds: number
}

/**
 * What is wrong with a retry policy for a target with this idempotency retention; null if it fits. If the retries of a run could take
 * longer, the target might take a late attempt for a new call.
 */
export function checkKeyRetention({ retry, idempotencyRetentionSeconds }: Retention): Problem | null {
  const { maxAttempts, capSeconds } = retry
  if (maxAttempts * capSeconds <= idempotencyRetentionSeconds) return null
  return {
    path: 'policy.retry',
    message:
      `expected maxAttempts × capSeconds to be at most ${idempotencyRetentionSeconds} s, for which the target ` +
      `remembers an idempotency key, got ${maxAttempts} × ${capSeconds} s = ${maxAttempts * capSeconds} s: ` +
      `lower capSeconds or maxAttempts`,
  }
}
