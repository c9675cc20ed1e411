import { stableFraction } from './stable-fraction.ts'

/** How often a run is tried, and how long it waits in between. */
export interface RetryPolicy {
  /** Including the first. 1..100 */
  readonly maxAttempts: number
  /** The wait before the second attempt; it doubles from there. */
  readonly baseSeconds: number
  /** No wait is longer. */
  readonly capSeconds: number
}

/** For a run whose policy can no longer be read. */
export const NO_RETRY: RetryPolicy = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }

/** What counts of a `failed` outcome (`../target.ts`, which needs the policy above and so cannot be imported here). */
interface Failure {
  readonly retryable: boolean
  readonly retryAfterMs?: number
}

interface FailedAttempt {
  readonly policy: RetryPolicy
  /** The one that failed; counts from 1. */
  readonly attempt: number
  readonly outcome: Failure
  /** The run's id. */
  readonly jitterSeed: string
}

export type RetryDecision = { readonly kind: 'retry'; readonly delayMs: number } | { readonly kind: 'final' }

/** How much of a backoff the jitter may take off. */
const JITTER_SHARE = 0.1

/** Whether a failed attempt is followed by another, and after how long. */
export function decideRetry({ policy, attempt, outcome, jitterSeed }: FailedAttempt): RetryDecision {
  if (!outcome.retryable || attempt >= policy.maxAttempts) return { kind: 'final' }
  const capMs = policy.capSeconds * 1000
  const backoffMs = jittered(Math.min(policy.baseSeconds * 1000 * 2 ** (attempt - 1), capMs), jitterSeed, attempt)
  const askedMs = Math.ceil(outcome.retryAfterMs ?? 0)
  // A comparison, not Math.max: what a target made of an unreadable header may be NaN, and would win there.
  const waitMs = askedMs > backoffMs ? askedMs : backoffMs
  // The cap outweighs Retry-After: attempts × cap must stay within what the target remembers (E-51).
  return { kind: 'retry', delayMs: Math.min(waitMs, capMs) }
}

/** Runs that failed together must not come back together. It only takes off, so that the cap holds (E-51). */
function jittered(backoffMs: number, seed: string, attempt: number): number {
  return Math.ceil(backoffMs * (1 - JITTER_SHARE * stableFraction(`${seed}:${attempt}`)))
}
