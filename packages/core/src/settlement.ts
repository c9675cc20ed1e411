import type { Json } from './json.ts'
import type { Refusal } from './policy/grant.ts'
import { decideRetry, type RetryPolicy } from './policy/retry.ts'
import type { Settlement } from './store/settle.ts'
import type { HeldRun } from './store/taken-run.ts'
import type { AttemptError, Outcome } from './target.ts'

/** How an attempt ended, as the worker saw it. */
export type Ending =
  | Outcome
  /** It may not act any more; its target was not called. */
  | { readonly kind: 'refused'; readonly reason: Refusal }
  /** Its worker died; another one says so. */
  | { readonly kind: 'lost' }
  /** Its worker is going down and gives it back untried: no attempt is charged. */
  | { readonly kind: 'handed_back' }

const LOST: AttemptError = { code: 'worker_lost', message: 'the worker died before the attempt was settled' }

/** Any worker with room may take it. */
const AT_ONCE = { waitsFor: 'worker', dueInMs: 0 } as const

/** The one place where the ending of an attempt becomes what is written: a fresh run, a retry and a rescue alike. */
export function settlementOf(run: HeldRun, retry: RetryPolicy, ending: Ending): Settlement {
  const base = {
    scheduleId: run.scheduleId,
    scheduledFor: run.scheduledFor,
    workerId: run.workerId,
    token: run.token,
    targetKind: run.targetKind,
    reason: null,
    waitsFor: null,
    dueInMs: null,
    error: null,
    result: null,
  }
  switch (ending.kind) {
    case 'succeeded':
      return { ...base, state: 'succeeded', outcome: 'succeeded', result: toText(ending.result) }
    case 'cancelled':
      return { ...base, state: 'cancelled', outcome: 'cancelled' }
    case 'malformed':
      return { ...base, state: 'failed', outcome: 'malformed', error: errorText(ending.error) }
    case 'refused':
      // Of a run that was tried before it cannot be said that it did not run.
      return { ...base, state: run.attempt === 1 ? 'skipped' : 'failed', outcome: null, reason: ending.reason }
    case 'handed_back':
      return { ...base, state: run.attempt === 1 ? 'pending' : 'retrying', outcome: null, ...AT_ONCE }
    case 'lost':
      // At once: it has waited for a lease to run out already.
      return run.attempt < retry.maxAttempts
        ? { ...base, state: 'retrying', outcome: 'lost', ...AT_ONCE, error: errorText(LOST) }
        : { ...base, state: 'failed', outcome: 'lost', error: errorText(LOST) }
    case 'failed': {
      const { attempt, runId } = run
      const failed = { ...base, outcome: 'failed', error: errorText(ending.error) } as const
      const next = decideRetry({ policy: retry, attempt, outcome: ending, jitterSeed: runId })
      return next.kind === 'retry'
        ? { ...failed, state: 'retrying', waitsFor: 'retry', dueInMs: next.delayMs }
        : { ...failed, state: 'failed' }
    }
  }
}

function toText(value: Json): string | null {
  return value === null ? null : JSON.stringify(value)
}

function errorText(error: AttemptError): string {
  return JSON.stringify(error)
}
