import { z } from 'zod'

import type { DrainRule, Outcome, Target, TargetContext } from '../src/ports/target.ts'

const SPEC = z.looseObject({ kind: z.literal('test'), timeoutSeconds: z.number().optional() })

export type TestSpec = z.infer<typeof SPEC>
/** What a call was made with, without the functions of its context. */
export type Call = Omit<TargetContext<TestSpec>, 'record' | 'extend' | 'callback'>
export type Script = (context: TargetContext<TestSpec>, signal: AbortSignal) => Outcome | Promise<Outcome>

const SUCCEED: Script = () => SUCCEEDED

/** A target that answers as the test's script says, and records its calls. */
export class ScriptedTarget implements Target<TestSpec> {
  readonly kind = 'test'
  readonly schema = SPEC
  readonly policy = { retry: { maxAttempts: 3, baseSeconds: 10, capSeconds: 100 } }
  readonly calls: Call[] = []
  /** The same with the functions. */
  readonly contexts: TargetContext<TestSpec>[] = []
  script: Script = SUCCEED
  /** Set both before a worker is made: a worker asks its targets for their hooks when it is made. */
  admit?: NonNullable<Target<TestSpec>['admit']>
  settled?: NonNullable<Target<TestSpec>['settled']>
  drain?: DrainRule
  deadlineMs?: NonNullable<Target<TestSpec>['deadlineMs']>
  #waiters: { count: number; resolve: () => void }[] = []

  requiredScope(): string {
    return 'test:dispatch:bell'
  }

  timeoutMs({ timeoutSeconds = 30 }: TestSpec): number {
    return timeoutSeconds * 1000
  }

  async dispatch(context: TargetContext<TestSpec>, signal: AbortSignal): Promise<Outcome> {
    const { record: _record, extend: _extend, callback: _callback, ...call } = context
    this.calls.push(call)
    this.contexts.push(context)
    for (const { count, resolve } of this.#waiters) if (this.calls.length >= count) resolve()
    return this.script(context, signal)
  }

  /** Resolves once the target has been called this many times. */
  async whenCalled(count: number): Promise<void> {
    if (this.calls.length >= count) return
    await new Promise<void>((resolve) => this.#waiters.push({ count, resolve }))
  }
}

/** A script whose calls last until the test answers, or until their signal fires: then they answer `cancelled`. */
export function held(): { script: Script; answer: (outcome: Outcome) => void } {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const script: Script = (_context, signal) => {
    signal.addEventListener('abort', () => resolve({ kind: 'cancelled' }), { once: true })
    return promise
  }
  return { script, answer: resolve }
}

/** The same with a separate answer for each call: `answers[0]` ends the first. */
export function heldEach(): { script: Script; answers: ((outcome: Outcome) => void)[] } {
  const answers: ((outcome: Outcome) => void)[] = []
  const script: Script = (context, signal) => {
    const call = held()
    answers.push(call.answer)
    return call.script(context, signal)
  }
  return { script, answers }
}

export const SUCCEEDED: Outcome = { kind: 'succeeded', result: null }
export const FAIL: Outcome = { kind: 'failed', error: { code: 'test', message: 'as the test wants' }, retryable: true }
export const FAIL_FOR_GOOD: Outcome = { ...FAIL, retryable: false }
