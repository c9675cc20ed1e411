import type { ProblemCode } from './problem.ts'

/** Problems that time mends: their answers say in `Retry-After` how long to wait. */
export const RETRY_AFTER_PROBLEMS: readonly ProblemCode[] = ['idempotency_in_flight', 'rate_limited', 'unavailable']
