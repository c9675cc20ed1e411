import type { Outcome, Target, TargetContext } from '@carillon/core'
import { z } from 'zod'

const SPEC = z.looseObject({ kind: z.literal('echo') })

/** Succeeds at once, and returns the slot that it was called for. */
export class EchoTarget implements Target {
  readonly kind = 'echo'
  readonly schema = SPEC
  readonly policy = { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } }

  requiredScope(): string {
    return 'echo:call:anybody'
  }

  timeoutMs(): number {
    return 1000
  }

  async dispatch({ scheduleId }: TargetContext<{ readonly kind: string }>): Promise<Outcome> {
    return { kind: 'succeeded', result: { echoed: scheduleId } }
  }
}
