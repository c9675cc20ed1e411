import type { Problem } from '../problem.ts'
import type { RetryPolicy } from './retry.ts'

interface Retention {
  readonly retry: RetryPolicy
  /** For how long the called side remembers an idempotency key. */
  readonly idempotencyRetentionSeconds: number
}

/**
 * How many times over the retries of one run fit into the time for which its key is remembered (E-51; also the gauge of
 * E-52). Below 1 a late attempt may be taken for a new call.
 */
export function retentionMargin({ retry, idempotencyRetentionSeconds }: Retention): number {
  return idempotencyRetentionSeconds / (retry.maxAttempts * retry.capSeconds)
}

/** What is wrong with a retry policy for a target that promises to remember keys for so long; null if it fits. */
export function checkRetention({ retry, idempotencyRetentionSeconds }: Retention): Problem | null {
  if (retentionMargin({ retry, idempotencyRetentionSeconds }) >= 1) return null
  const { maxAttempts, capSeconds } = retry
  return {
    path: 'policy.retry',
    message:
      `expected maxAttempts × capSeconds to be at most ${idempotencyRetentionSeconds} s, for which the target ` +
      `remembers an idempotency key, got ${maxAttempts} × ${capSeconds} s = ${maxAttempts * capSeconds} s: ` +
      `lower capSeconds or maxAttempts`,
  }
}
