import type { RetryPolicy } from '@carillon/api'
import { z } from 'zod'

import type { Outcome, Target, TargetContext } from '../../src/ports/target.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import type { SeededRandom } from './seeded-random.ts'

const SPEC = z.object({ kind: z.literal('test') })

/** A target whose calls succeed, fail, or wait until the model answers them or their signal fires. It records each call. */
export class ModelTarget implements Target {
  readonly kind = 'test'
  readonly schema = SPEC
  readonly retry: RetryPolicy = { maxAttempts: 3, baseSeconds: 10, capSeconds: 40 }
  /** The number of calls per attempt of a run. */
  readonly calls = new Map<string, number>()
  readonly #random: SeededRandom
  #held: ((outcome: Outcome) => void)[] = []
  /** Whether every new call succeeds at once. */
  alwaysSucceeds = false

  constructor(random: SeededRandom) {
    this.#random = random
  }

  requiredScope(): string {
    return 'test:dispatch:bell'
  }

  timeoutMs(): number {
    return 3_600_000
  }

  async dispatch({ runId, attempt }: TargetContext<{ kind: string }>, signal: AbortSignal): Promise<Outcome> {
    const name = `${runId} attempt ${attempt}`
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1)
    if (this.alwaysSucceeds) return SUCCEEDED
    switch (this.#random.weighted({ succeed: 4, fail: 3, failForGood: 0.5, hold: 5 })) {
      case 'succeed':
        return SUCCEEDED
      case 'fail':
        return FAIL
      case 'failForGood':
        return FAIL_FOR_GOOD
      case 'hold': {
        const { promise, resolve } = Promise.withResolvers<Outcome>()
        this.#held.push(resolve)
        signal.addEventListener('abort', () => resolve({ kind: 'cancelled' }), { once: true })
        return promise
      }
    }
  }

  /** Answers one of the waiting calls. */
  answerOne(): void {
    const [resolve] = this.#held.splice(this.#random.below(this.#held.length), 1)
    resolve?.(this.#random.chance(0.6) ? SUCCEEDED : FAIL)
  }

  answerAll(): void {
    for (const resolve of this.#held.splice(0)) resolve(SUCCEEDED)
  }
}
