import type { Outcome, Target, TargetContext } from '@carillon/core'
import { z } from 'zod'

export const NOOP = 'noop'

export type NoopContext = TargetContext<{ readonly kind: string }>

/** A target that only reports its calls. */
export function noopTarget(onCall: (context: NoopContext) => void = () => undefined): Target {
  return {
    kind: NOOP,
    schema: z.looseObject({ kind: z.string() }),
    policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
    requiredScope: () => `${NOOP}:call:nothing`,
    timeoutMs: () => 30_000,
    dispatch: (context) => {
      onCall(context)
      return Promise.resolve({ kind: 'succeeded', result: null })
    },
  }
}

/** A target that fails the first attempt of a run, and only reports the call of the second one. */
export function failingOnceTarget(onRetry: (context: NoopContext) => void): Target {
  const target = noopTarget(onRetry)
  return {
    ...target,
    dispatch: (context, signal) => (context.attempt === 1 ? Promise.resolve(FAILED) : target.dispatch(context, signal)),
  }
}

const FAILED: Outcome = {
  kind: 'failed',
  error: { code: 'bench', message: 'the first attempt fails on purpose' },
  retryable: true,
}
