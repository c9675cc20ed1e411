import { z } from 'zod'

import type { Outcome, Target, TargetContext } from '../../src/ports/target.ts'
import { FAIL, FAIL_FOR_GOOD, SUCCEEDED } from '../scripted-target.ts'
import type { ModelHooks } from './model-hooks.ts'
import type { SeededRandom } from './seeded-random.ts'

const SPEC = z.object({ kind: z.literal('test') })
const DEADLINE_MAX_MS = 60_000
const DEFERRED_MAX_MS = 30_000

/** A call of the target that some service could complete from elsewhere, also long after the call. */
export interface ModelCall {
  readonly runId: string
  readonly attempt: number
}

/**
 * A target whose calls succeed, fail, are put off, are passed on, or wait until the model answers them or their signal fires. It records
 * each call.
 */
export class ModelTarget implements Target {
  readonly kind = 'test'
  readonly schema = SPEC
  readonly policy = { retry: { maxAttempts: 3, baseSeconds: 10, capSeconds: 40 } }
  readonly admit?: ModelHooks['admit']
  readonly settled?: ModelHooks['settled']
  /** The number of calls per attempt of a run, less those that it put off: these are not charged. */
  readonly calls = new Map<string, number>()
  /** All calls, for completions that come early, late and twice. */
  readonly made: ModelCall[] = []
  readonly #random: SeededRandom
  readonly #now: () => number
  #held: ((outcome: Outcome) => void)[] = []
  /** Whether every new call succeeds at once. */
  alwaysSucceeds = false

  /** @param hooks undefined: the kind has no hooks */
  constructor(random: SeededRandom, now: () => number, hooks: ModelHooks | undefined) {
    this.#random = random
    this.#now = now
    if (hooks === undefined) return
    this.admit = (tx, candidates) => hooks.admit(tx, candidates)
    this.settled = (tx, ends) => hooks.settled(tx, ends)
  }

  requiredScope(): string {
    return 'test:dispatch:bell'
  }

  timeoutMs(): number {
    return 3_600_000
  }

  async dispatch({ runId, attempt }: TargetContext<{ kind: string }>, signal: AbortSignal): Promise<Outcome> {
    const name = `${runId} attempt ${attempt}`
    this.made.push({ runId, attempt })
    this.#count(name, 1)
    if (this.alwaysSucceeds) return SUCCEEDED
    switch (this.#random.weighted({ succeed: 4, fail: 3, failForGood: 0.5, accept: 5, defer: 1, hold: 5 })) {
      case 'succeed':
        return SUCCEEDED
      case 'fail':
        return FAIL
      case 'failForGood':
        return FAIL_FOR_GOOD
      case 'accept':
        return this.#accepted()
      case 'defer':
        this.#count(name, -1)
        return { kind: 'deferred', until: this.#now() + this.#random.below(DEFERRED_MAX_MS), why: 'the model says so' }
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
    resolve?.(this.#random.weighted({ succeed: 5, fail: 3, accept: 3 }) === 'succeed' ? SUCCEEDED : this.#unfinished())
  }

  answerAll(): void {
    for (const resolve of this.#held.splice(0)) resolve(SUCCEEDED)
  }

  #unfinished(): Outcome {
    return this.#random.chance(0.5) ? FAIL : this.#accepted()
  }

  #accepted(): Outcome {
    return { kind: 'accepted', deadlineMs: this.#random.below(DEADLINE_MAX_MS) }
  }

  #count(name: string, change: number): void {
    this.calls.set(name, (this.calls.get(name) ?? 0) + change)
  }
}
