import type { Target, TargetContext } from '@carillon/core'
import { z } from 'zod'

export const NOOP = 'noop'

type Context = TargetContext<{ readonly kind: string }>

/** A target that does nothing but tell that it was called. */
export function noopTarget(onCall: (context: Context) => void = () => undefined): Target {
  return {
    kind: NOOP,
    schema: z.looseObject({ kind: z.string() }),
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    requiredScope: () => `${NOOP}:call:nothing`,
    timeoutMs: () => 30_000,
    dispatch: (context) => {
      onCall(context)
      return Promise.resolve({ kind: 'succeeded', result: null })
    },
  }
}
