import type { Outcome, Target, TargetContext } from '../src/ports/target.ts'

interface Spec {
  readonly kind: string
}

/** The target of one worker, with counts of the attempts that are about to call it or have called it. */
export class WatchedTarget implements Target {
  readonly kind: string
  readonly schema: Target['schema']
  readonly retry: Target['retry']
  readonly #target: Target
  /** Attempts whose permission is being checked, and those that failed the check. */
  #approaching = 0
  #busy = 0

  constructor(target: Target) {
    this.#target = target
    this.kind = target.kind
    this.schema = target.schema
    this.retry = target.retry
  }

  get approaching(): number {
    return this.#approaching
  }

  /** The number of unanswered calls. */
  get busy(): number {
    return this.#busy
  }

  requiredScope(spec: Spec): string {
    this.#approaching += 1
    return this.#target.requiredScope(spec)
  }

  timeoutMs(spec: Spec): number {
    return this.#target.timeoutMs(spec)
  }

  async dispatch(context: TargetContext<Spec>, signal: AbortSignal): Promise<Outcome> {
    this.#approaching -= 1
    this.#busy += 1
    try {
      return await this.#target.dispatch(context, signal)
    } finally {
      this.#busy -= 1
    }
  }
}
