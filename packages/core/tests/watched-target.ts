import type { Admission, DrainRule, Outcome, ScheduleEffect, Target, TargetContext } from '../src/ports/target.ts'

interface Spec {
  readonly kind: string
}

/** The target of one worker, with counts of the attempts that are about to call it or have called it. */
export class WatchedTarget implements Target {
  readonly kind: string
  readonly schema: Target['schema']
  readonly policy: Target['policy']
  readonly drain?: DrainRule
  readonly admit?: NonNullable<Target['admit']>
  readonly settled?: NonNullable<Target['settled']>
  readonly #target: Target
  /** Attempts whose permission is being checked, and those that failed the check. */
  #approaching = 0
  #busy = 0

  constructor(target: Target) {
    this.#target = target
    this.kind = target.kind
    this.schema = target.schema
    this.policy = target.policy
    if (target.drain !== undefined) this.drain = target.drain
    if (target.admit !== undefined) this.admit = (tx, candidates) => this.#admit(tx, candidates)
    if (target.settled !== undefined) this.settled = (tx, ends) => this.#settled(tx, ends)
  }

  get approaching(): number {
    return this.#approaching
  }

  /** The number of unanswered calls. */
  get busy(): number {
    return this.#busy
  }

  /** The hooks as they are now: a test may change them. */
  async #admit(...[tx, candidates]: Parameters<NonNullable<Target['admit']>>): Promise<readonly Admission[]> {
    return (await this.#target.admit?.(tx, candidates)) ?? []
  }

  async #settled(
    ...[tx, ends]: Parameters<NonNullable<Target['settled']>>
  ): Promise<ReadonlyMap<string, ScheduleEffect> | void> {
    return this.#target.settled?.(tx, ends)
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
